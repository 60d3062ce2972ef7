//! The page of `imbrex trace info --html`.

use std::path::Path;
use std::process::{Command, Output};

const TRACE: &str = "0,0,4096,w,0.0\n0,4,4096,w,1.0\n0,0,4096,r,2.5\n";

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["trace", "info", "t.spc"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

#[test]
fn the_page_is_written_beside_the_table_and_replaces_an_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    std::fs::write(folder.path().join("t.spc"), TRACE).expect("written");
    std::fs::write(&page, "old").expect("written");
    let output = imbrex(folder.path(), &["--html", "page.html"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, imbrex(folder.path(), &[]).stdout);
    let first = std::fs::read_to_string(&page).expect("the page");
    assert!(first.contains("<h1>3 requests in 2.50 s, 66.7 % writes</h1>"));
    assert!(first.ends_with("</html>\n"));
    imbrex(folder.path(), &["--html", "page.html"]);
    assert_eq!(std::fs::read_to_string(&page).expect("the page"), first);
    let files = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(files, 2, "nothing else is left behind");
}

#[test]
fn the_page_never_takes_the_place_of_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.spc");
    std::fs::write(&trace, TRACE).expect("written");
    let output = imbrex(folder.path(), &["--html", "./t.spc"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("./t.spc: is the trace t.spc itself; accepted: another file"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(&trace).expect("the trace"), TRACE);
}
