//! One line of a web server's log: what was asked for, when, and what came of it.
//!
//! Two dialects: the common log format, `host ident user [day/month/year:hour:minute:second zone] "request" status bytes`,
//! also with the two quoted fields that the combined format has behind it; and the tab-separated columns `host logname time
//! method url response bytes`, with the time in seconds of Unix time, in which the NASA logs are passed on too. Lines are bytes,
//! not text of any encoding, and requests may hold quotes and blanks, so a line is read from both its ends.

use super::text::whole_number;

/// Header line of the tab-separated dialect, as far as its columns are read.
const TSV_HEADER: &[u8] = b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes";
/// A reply longer than this is a damaged number.
const REPLY_BYTES_MAX: u64 = 1 << 40;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Common or combined log format.
    Common,
    /// Tab-separated columns behind a header line.
    Tabs,
}

/// A request and its reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Seconds of Unix time.
    pub time_s: u64,
    pub method: &'a [u8],
    /// Without its query.
    pub url: &'a [u8],
    pub status: u16,
    /// Length of the reply; `None` where the log has a dash.
    pub bytes: Option<u64>,
}

impl Dialect {
    /// The dialect of a log that starts with these bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        match is_header(bytes) {
            true => Self::Tabs,
            false => Self::Common,
        }
    }

    /// The request of a line, or `None` if the line is none of the dialect.
    #[inline]
    pub(super) fn entry(self, line: &[u8]) -> Option<Entry<'_>> {
        match self {
            Self::Common => common(line),
            Self::Tabs => tabs(line),
        }
    }
}

/// True of the header line of the tab-separated dialect.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    bytes.starts_with(TSV_HEADER)
}

/// True when a line has the shape of the common or the combined log format.
pub(super) fn looks_like(line: &[u8]) -> bool {
    common(line).is_some()
}

fn common(line: &[u8]) -> Option<Entry<'_>> {
    let line = line.trim_ascii();
    let rest = match line.last()? {
        b'"' => without_quoted(without_quoted(line)?)?,
        _ => line,
    };
    let (rest, bytes) = last_word(rest)?;
    let (rest, status) = last_word(rest)?;
    let rest = rest.strip_suffix(b"\"")?;
    let opening = memchr::memchr(b'[', rest)?;
    let closing = opening + memchr::memchr(b']', &rest[opening..])?;
    let quote = closing + memchr::memchr(b'"', &rest[closing..])?;
    let (method, url) = request(&rest[quote + 1..])?;
    Some(Entry {
        time_s: unix_time(&rest[opening + 1..closing])?,
        method,
        url,
        status: status_of(status)?,
        bytes: reply_bytes(bytes)?,
    })
}

fn tabs(line: &[u8]) -> Option<Entry<'_>> {
    let mut fields = line.split(|&byte| byte == b'\t');
    let time_s = whole_number(fields.nth(2)?)?;
    let (method, url) = (fields.next()?, fields.next()?);
    Some(Entry {
        time_s,
        method,
        url: without_query(url),
        status: status_of(fields.next()?)?,
        bytes: reply_bytes(fields.next()?)?,
    })
}

/// A line without the quoted field at its end.
fn without_quoted(line: &[u8]) -> Option<&[u8]> {
    let inside = line.strip_suffix(b"\"")?;
    let start = memchr::memmem::rfind(inside, b" \"")?;
    Some(&inside[..start])
}

/// A line without its last word, and that word.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let blank = memchr::memrchr(b' ', line)?;
    Some((line[..blank].trim_ascii_end(), &line[blank + 1..]))
}

/// Method and URL of `GET /path HTTP/1.0`; the version may be missing, and the path may hold blanks.
fn request(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii();
    let blank = memchr::memchr(b' ', text)?;
    let (method, mut url) = (&text[..blank], &text[blank + 1..]);
    if let Some(version) = memchr::memmem::rfind(url, b" HTTP/") {
        url = &url[..version];
    }
    let url = url.trim_ascii();
    let is_word = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    (is_word && !url.is_empty()).then(|| (method, without_query(url)))
}

fn without_query(url: &[u8]) -> &[u8] {
    &url[..memchr::memchr(b'?', url).unwrap_or(url.len())]
}

fn status_of(field: &[u8]) -> Option<u16> {
    let status = whole_number(field).filter(|status| (100..1000).contains(status))?;
    u16::try_from(status).ok()
}

/// The length of a reply, if the field has one; `None` if it holds something else.
fn reply_bytes(field: &[u8]) -> Option<Option<u64>> {
    match field {
        b"-" => Some(None),
        field => whole_number(field).filter(|&bytes| bytes <= REPLY_BYTES_MAX).map(Some),
    }
}

/// Seconds of Unix time of `01/Jul/1995:00:00:01 -0400`.
fn unix_time(date: &[u8]) -> Option<u64> {
    const MONTHS: [&[u8]; 12] = [
        b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov",
        b"Dec",
    ];
    let [
        d1,
        d2,
        b'/',
        m1,
        m2,
        m3,
        b'/',
        y1,
        y2,
        y3,
        y4,
        b':',
        h1,
        h2,
        b':',
        n1,
        n2,
        b':',
        s1,
        s2,
        b' ',
        sign,
        zone @ ..,
    ] = date
    else {
        return None;
    };
    let number = |digits: &[u8]| whole_number(digits).and_then(|number| i64::try_from(number).ok());
    let month = MONTHS.iter().position(|month| *month == [*m1, *m2, *m3])?;
    let (day, year) = (number(&[*d1, *d2])?, number(&[*y1, *y2, *y3, *y4])?);
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*n1, *n2])?, number(&[*s1, *s2])?);
    let zone = number(zone).filter(|_| zone.len() == 4)?;
    // A leap second is a sixtieth one.
    let is_date = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let east_s = match sign {
        b'+' => zone / 100 * 3600 + zone % 100 * 60,
        b'-' => -(zone / 100 * 3600 + zone % 100 * 60),
        _ => return None,
    };
    let days = days_since_1970(year, month as i64 + 1, day);
    let time_s = days * 86_400 + hour * 3600 + minute * 60 + second - east_s;
    u64::try_from(time_s).ok().filter(|_| is_date)
}

/// Days from 1 January 1970 to a date of the Gregorian calendar. Years are counted from March, so that the leap day is the last
/// day of one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const DAYS_TO_1970: i64 = 719_468;
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common_entry(line: &str) -> Option<Entry<'_>> {
        Dialect::Common.entry(line.as_bytes())
    }

    #[test]
    fn dates_are_unix_times() {
        for (date, time_s) in [
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("01/Jul/1995:00:00:01 -0400", Some(804_571_201)),
            ("29/Feb/2000:23:59:59 +0000", Some(951_868_799)),
            ("01/Mar/2000:05:30:00 +0530", Some(951_868_800)),
            ("31/Dec/2018:23:59:60 +0000", Some(1_546_300_800)),
            ("01/Jan/1970:00:00:00 +0100", None),
            ("01/Foo/1995:00:00:01 -0400", None),
            ("01/Jul/1995:24:00:01 -0400", None),
            ("1/Jul/1995:00:00:01 -0400", None),
        ] {
            assert_eq!(unix_time(date.as_bytes()), time_s, "{date}");
        }
    }

    #[test]
    fn requests_of_every_shape() {
        let line =
            |request: &str| format!("h - - [01/Jul/1995:00:00:01 -0400] \"{request}\" 200 17");
        for (request, method, url) in [
            ("GET /a.html HTTP/1.0", "GET", "/a.html"),
            ("GET /a.html", "GET", "/a.html"),
            ("GET /a?x=1 HTTP/1.0", "GET", "/a"),
            ("GET /a \"b\" c HTTP/1.0", "GET", "/a \"b\" c"),
            ("HEAD / HTTP/1.0", "HEAD", "/"),
        ] {
            let line = line(request);
            let entry = common_entry(&line).unwrap();
            assert_eq!((entry.method, entry.url), (method.as_bytes(), url.as_bytes()));
            assert_eq!((entry.time_s, entry.status, entry.bytes), (804_571_201, 200, Some(17)));
        }
        for request in ["", "/a.html", "get /a HTTP/1.0", "GET  HTTP/1.0"] {
            assert_eq!(common_entry(&line(request)), None, "{request}");
        }
        let combined =
            line("GET /a HTTP/1.1") + " \"http://from/a \\\"page\\\"\" \"Agent (of some kind)\"";
        assert_eq!(common_entry(&combined).unwrap().url, b"/a");
        let dash = line("GET /a HTTP/1.1").replace(" 17", " -");
        assert_eq!(common_entry(&dash).unwrap().bytes, None);
        for wrong in ["", "word", "h - - [01/Jul/1995:00:00:01 -0400] \"GET /a", "\"\" \"\" 200 17"]
        {
            assert_eq!(common_entry(wrong), None, "{wrong}");
        }
    }
}
