//! Where a served device is found by the command of `--run`, and where its report goes.

use crate::served::{Place, failure, imbrex, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

fn report_in(text: &str) -> Value {
    let report: Value = serde_json::from_str(text).expect("a report");
    assert_eq!(report["schema"], "imbrex.report/1");
    report
}

/// `imbrex serve` of a small image with more arguments, temporary files in a folder of their own.
fn serve(place: &Place, arguments: &[&str]) -> Output {
    let temporary = place.path("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    let output = imbrex()
        .args(["serve", "cmr-only", "--data", &place.data()])
        .args(arguments)
        .env("TMPDIR", &temporary)
        .output()
        .expect("the program");
    let left = fs::read_dir(&temporary).expect("a folder").count();
    assert_eq!(left, 0, "temporary files were left");
    output
}

fn image() -> Place {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    place
}

#[test]
fn a_command_without_a_named_socket_gets_a_private_one() {
    let place = image();
    let command = "echo $uri; stat -c '%a %F' $unixsocket ${unixsocket%/*}; exit 3";
    let output = serve(&place, &["--run", command]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = said.lines().collect();
    let start = format!("nbd+unix:///?socket={}/imbrex-", place.path("tmp"));
    assert!(lines[0].starts_with(&start), "{said}");
    assert_eq!(lines[1..], ["600 socket", "700 directory"]);
    // Standard output is the command's alone, and the report the last that is said.
    let said = String::from_utf8(output.stderr).expect("text");
    report_in(said.lines().last().expect("lines"));
    // A device that cannot be served leaves no socket either.
    fs::remove_file(place.path("data/cmr.img")).expect("a member");
    let output = serve(&place, &["--run", "true"]);
    assert!(failure(&output).contains("cmr.img"));
}

#[test]
fn a_device_that_nobody_could_find_is_refused_with_all_that_would_do() {
    let place = image();
    let output = run(&["serve", "cmr-only", "--data", &place.data()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("<--socket <PATH>|--listen <ADDR>|--run <CMD>>"), "{said}");
}

#[test]
fn a_report_goes_to_its_file_and_replaces_an_earlier_one_alone() {
    let place = image();
    let (file, longer) = (place.path("report.json"), place.path("longer.json"));
    let output = serve(&place, &["--run", "echo mine", "--report", &file]);
    assert_eq!(output.stdout, b"mine\n");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(said.lines().count(), 1, "no report: {said}");
    let text = fs::read_to_string(&file).expect("a report");
    assert_eq!(report_in(&text)["workload"]["requests"], 0);
    // A longer one leaves no end of itself behind, and a file that `mktemp` made will do.
    fs::write(&longer, text.clone() + &" ".repeat(100_000)).expect("a file");
    let empty = place.path("empty.json");
    fs::write(&empty, "").expect("a file");
    for path in [&longer, &empty] {
        assert!(serve(&place, &["--run", "true", "--report", path]).status.success());
        let text = fs::read_to_string(path).expect("a report");
        report_in(&text);
        assert_eq!(text.lines().count(), 1);
    }
    // Without a command it is no different.
    let socket = place.socket();
    let server = crate::served::Served::start(
        imbrex()
            .args(["serve", "cmr-only", "--data", &place.data()])
            .args(["--socket", &socket, "--report", &file]),
        Path::new(&socket),
    );
    assert_eq!(server.stop(), Value::Null, "nothing on standard output");
    let text = fs::read_to_string(&file).expect("a report");
    assert_eq!(report_in(&text)["workload"]["path"], format!("nbd+unix:///?socket={socket}"));
}

#[test]
fn a_report_takes_the_place_of_no_other_file() {
    let place = image();
    let refused = |path: &str, others: &[&str]| {
        let arguments = [&["--run", "true", "--report", path], others].concat();
        failure(&serve(&place, &arguments))
    };
    let other = "there is a file that is no report; accepted: a path where none is, or an earlier report, \
                 which is replaced";
    let precious = place.path("precious");
    fs::write(&precious, "{\"schema\": 1}").expect("a file");
    assert_eq!(refused(&precious, &[]), format!("imbrex: --report {precious}: {other}"));
    assert_eq!(fs::read(&precious).expect("a file"), b"{\"schema\": 1}");
    let member = place.path("data/cmr.img");
    assert_eq!(refused(&member, &[]), format!("imbrex: --report {member}: {other}"));
    // A client may have written what a report begins with; by another name it is still the member.
    let link = place.path("link");
    fs::hard_link(&member, &link).expect("a link");
    let mut bytes = fs::read(&member).expect("a member");
    let start = b"{\"schema\":\"imbrex.report/1";
    bytes[..start.len()].copy_from_slice(start);
    fs::write(&member, &bytes).expect("a member");
    assert_eq!(
        refused(&link, &[]),
        format!("imbrex: --report {link}: it is the disk of node `cmr`")
    );
    let kept = fs::read(&member).expect("a member");
    // Behind the disk lies its label, which says that there was a start.
    let end = bytes.len() - 2 * 4096;
    assert!(kept[..end] == bytes[..end]);
    // A file cannot be both, and one that was new goes away again.
    let both = place.path("both");
    assert_eq!(
        refused(&both, &["--record", &both]),
        format!(
            "imbrex: --record {both}: there is such a file already; accepted: a path where none is"
        )
    );
    assert!(!Path::new(&both).exists());
    let nowhere = place.path("none/report.json");
    assert_eq!(
        refused(&nowhere, &[]),
        format!("imbrex: --report {nowhere}: No such file or directory (os error 2)")
    );
}
