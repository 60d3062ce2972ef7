//! What `trace convert` and `trace combine` write never takes the place of what they read, and what it cannot say is told.

use std::fs;
use std::path::Path;
use std::process::Command;

const TRACE: &str = "0,0,4096,w,0.0\n0,8,4096,w,1.0\n";

/// The one line of the error of a command that fails.
fn refused(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.current_dir(folder).arg("trace").args(args);
    let output = command.output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn an_output_that_is_an_input_by_any_name_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let trace = folder.join("out-2.spc");
    fs::write(&trace, TRACE).expect("written");
    fs::write(folder.join("other.spc"), TRACE).expect("written");
    fs::hard_link(&trace, folder.join("hard.spc")).expect("linked");
    std::os::unix::fs::symlink("out-2.spc", folder.join("soft.spc")).expect("linked");
    for output in ["out-2.spc", "./out-2.spc", "hard.spc", "soft.spc"] {
        let expected =
            format!("imbrex: {output}: is the trace out-2.spc itself; accepted: another file\n");
        let converted = refused(folder, &["convert", "out-2.spc", output]);
        assert_eq!(converted, expected);
        let sources = ["combine", "other.spc", "out-2.spc,limit=1", "-o", output];
        assert_eq!(refused(folder, &sources), expected);
    }
    // The second of three parts is a source.
    let split = ["combine", "out-2.spc", "-o", "out.spc", "--split", "3"];
    let error = refused(folder, &[&split[..], &["--by", "address"]].concat());
    assert!(error.contains("out-2.spc: is the trace out-2.spc itself"), "{error}");
    assert!(!folder.join("out-1.spc").exists(), "a part was written");
    assert_eq!(fs::read_to_string(&trace).expect("the trace"), TRACE);
}

#[test]
fn a_failure_keeps_the_old_output_and_leaves_no_new_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let damaged = format!("{}garbage\n", TRACE.repeat(2000));
    fs::write(folder.join("damaged.spc"), damaged).expect("written");
    fs::write(folder.join("old.spc"), TRACE).expect("written");
    for output in ["old.spc", "new.spc", "new.spc.zst"] {
        let error = refused(folder, &["convert", "damaged.spc", output]);
        assert!(error.contains("damaged.spc, line 4001"), "{error}");
    }
    let old = fs::read_to_string(folder.join("old.spc")).expect("the old trace");
    assert_eq!(old, TRACE);
    assert_eq!(fs::read_dir(folder).expect("the folder").count(), 2);
}

#[test]
fn what_the_output_cannot_say_is_told_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = "h,op,off,len\n0,W,0,4096\n0,T,0,4096\n0,W,4096,4096\n";
    fs::write(folder.path().join("trims.csv"), trace).expect("written");
    let told = |output: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
        command.current_dir(folder.path()).args([
            "trace",
            "convert",
            "trims.csv",
            output,
            "--map",
            "op=op:R|W|T,off=off,len=len",
        ]);
        let output = command.output().expect("the program runs");
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(
        told("out.spc"),
        "out.spc: 2 records\nout.spc: lost in this format: trims (left out): 1, that there are no times (now \
         all 0)\n"
    );
    assert_eq!(told("out.imbrex"), "out.imbrex: 3 records\n");
}
