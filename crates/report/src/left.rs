//! What is said of a report from which runs are missing, because somebody stopped them.

use super::report::Report;

/// Names in the line at most; more are counted.
const NAMED_MAX: usize = 20;

impl Report {
    /// A line that says so, where it is so.
    pub(super) fn left_line(&self) -> Option<String> {
        if self.left.is_empty() {
            return None;
        }
        let named = &self.left[..self.left.len().min(NAMED_MAX)];
        let more = match self.left.len() - named.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        Some(format!(
            "Stopped before its end, {} not run: {}{more}.",
            self.left.len(),
            named.join("; ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::TableStyle;
    use super::*;

    fn report(left: usize) -> Report {
        Report {
            left: (0..left).map(|n| format!("t.csv, lru n=<{n}>")).collect(),
            ..Report::of_runs(vec![])
        }
    }

    #[test]
    fn what_is_left_stands_in_the_document_the_page_and_the_table() {
        let stopped = report(2);
        let line = "Stopped before its end, 2 not run: t.csv, lru n=<0>; t.csv, lru n=<1>.";
        assert_eq!(stopped.left_line().as_deref(), Some(line));
        assert!(stopped.to_table(TableStyle::Plain).contains(line));
        let page = stopped.to_html();
        assert!(page.contains(
            "<p class=\"notice\">Stopped before its end, 2 not run: t.csv, lru n=&lt;0&gt;;"
        ));
        let document = stopped.to_json();
        assert!(document.contains(r#""left":["t.csv, lru n=<0>","t.csv, lru n=<1>"]"#));
        let read: Report = serde_json::from_str(&document).expect("a report");
        assert_eq!(read, stopped);
    }

    #[test]
    fn nothing_is_said_of_a_report_with_all_its_runs() {
        let whole = report(0);
        assert!(!whole.to_json().contains("\"left\""));
        assert!(!whole.to_html().contains("Stopped"));
        assert!(!whole.to_table(TableStyle::Plain).contains("Stopped"));
    }

    #[test]
    fn of_many_names_some_are_counted() {
        let line = report(NAMED_MAX + 3).left_line().expect("runs are left");
        assert!(line.ends_with("lru n=<19>; and 3 more."), "{line}");
    }
}
