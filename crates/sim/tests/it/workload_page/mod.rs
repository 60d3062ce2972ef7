//! The page about a workload.

mod sample;

use crate::browser::opened;
use imbrex_sim::workload_page::workload_page;
use imbrex_traces::{SourceKind, TraceInfo};

/// A page of a trace of any length; the charts have a bounded number of points.
const PAGE_BYTES_MAX: usize = 600_000;

/// No number that is none, and nothing from elsewhere.
fn assert_sound(page: &str) {
    for address in ["http://", "https://", "url(", "@import", "src=\"", "href=\"/"] {
        assert!(!page.contains(address), "the page contains {address}");
    }
    // The script may speak of such numbers; what is shown and what is embedded may not.
    let shown = page.split("<script>").next().unwrap();
    let text = shown.split("</style>").nth(1).unwrap();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    for word in words {
        assert!(!["NaN", "inf", "null"].contains(&word), "{word} in {text}");
    }
    assert_eq!(page.matches("<section>").count(), page.matches("</section>").count());
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
}

#[test]
fn the_page_shows_every_section() {
    let info = sample::full("trace.csv");
    let page = workload_page(&info, None);
    for heading in [
        "Which drives it suits",
        "Request sizes",
        "Hits of an LRU cache",
        "Request rate over time",
        "Data rate over time",
        "Working set over time",
        "Accesses by address and time",
        "Writes per block, of the blocks accessed",
        "Writes per block, of the blocks written",
        "Gaps between arrivals",
        "Intervals between accesses of a block",
        "Figures and their definitions",
        "How it was measured",
    ] {
        assert!(page.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    for text in [
        "<h1>3 requests in 27.8 h, 66.7 % writes</h1>",
        "<span class=\"kind captured\">captured</span>",
        info.sha256.as_deref().unwrap(),
        "suits partly",
        "It would fill the cache, but rests often.",
        "<canvas",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_sound(&page);
    assert_eq!(page, workload_page(&info, None), "the same trace gives the same bytes");
}

#[test]
fn charts_say_their_values_in_words_too() {
    let page = workload_page(&sample::full("trace.csv"), None);
    let charts = page.matches("<div class=\"plot\"").count();
    assert_eq!(charts, 9);
    assert_eq!(page.matches("<summary>Values of this chart</summary>").count(), charts);
    // 583 reads, 503 of them of 4 KiB or less.
    assert!(page.contains("<tr><td>4.00 KiB</td><td>86.3 %</td><td>74.3 %</td></tr>"));
}

#[test]
fn names_are_escaped() {
    let mut info = sample::full("trace.csv");
    info.path = "</script><script>alert(1)</script>".to_string();
    info.label = "<img src=x>".to_string();
    let page = workload_page(&info, Some("<b>recipe</b>"));
    assert_eq!(page.matches("</script>").count(), 2, "data and program, nothing else");
    assert!(!page.contains("<img") && !page.contains("<b>recipe"));
    assert!(page.contains("default-src 'none'; script-src 'unsafe-inline'"));
}

#[test]
fn a_synthetic_trace_is_called_so() {
    let mut info = sample::full("synthetic:x");
    info.kind = SourceKind::Synthetic;
    let page = workload_page(&info, Some("seed = 7"));
    assert!(page.contains("<span class=\"kind synthetic\">synthetic</span>"));
    assert!(page.contains("Synthetic: generated from a recipe"));
    assert!(page.contains("seed = 7"));
}

#[test]
fn a_trace_without_times_leaves_out_what_needs_them() {
    // Lines of an ARC trace: first page, pages, something else twice.
    let info = sample::trace("trace.lis", "100 8 0 0\n4000 16 0 1\n100 8 0 2\n");
    assert_eq!(info.duration_s, None);
    let page = workload_page(&info, None);
    assert!(page.contains("This format has no times."));
    for heading in ["Request rate over time", "Gaps between arrivals", "Working set over time"] {
        assert!(!page.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    assert_sound(&page);
}

#[test]
fn the_smallest_traces_have_a_page() {
    let one = sample::trace("one.csv", &sample::msr(&[(0, "Write", 4096, 4096)]));
    let at_once =
        sample::trace("at-once.csv", &sample::msr(&[(0, "Read", 0, 512), (0, "Read", 0, 512)]));
    assert!(workload_page(&one, None).contains("<h1>1 request"));
    for info in [one, at_once] {
        assert_sound(&workload_page(&info, None));
    }
}

#[test]
fn a_browser_opens_the_page_without_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let opened = |info: &TraceInfo| {
        std::fs::write(&path, workload_page(info, None)).unwrap();
        opened(&path)
    };
    if let Some(dom) = opened(&sample::full("trace.csv")) {
        assert!(dom.contains("a bin</span>"), "the heat map was not painted");
    }
    opened(&sample::trace("trace.lis", "100 8 0 0\n"));
}
