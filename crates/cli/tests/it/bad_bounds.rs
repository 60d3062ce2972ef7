//! Files that a person writes are read up to a bound, whatever they are, and errors that list what
//! such a file names have an end.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Address space of the command, which takes some ten MB for itself: less than any of the files, and
/// none of them is read.
const ADDRESS_SPACE_KB: u64 = 256 << 10;
const FILE_BYTES: u64 = 300 << 20;

/// What the command says when it fails, in a folder, with little memory.
fn failure(folder: &Path, arguments: &str) -> String {
    let program = env!("CARGO_BIN_EXE_imbrex");
    let script = format!("ulimit -v {ADDRESS_SPACE_KB}; exec timeout 60 {program} {arguments}");
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder).output().expect("a shell");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
    said.trim_end().to_string()
}

#[test]
fn a_file_that_is_too_long_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["long.toml", "job.fio"] {
        let file = std::fs::File::create(folder.path().join(name)).expect("a file");
        file.set_len(FILE_BYTES).expect("a length");
    }
    let said = |arguments: &str| failure(folder.path(), arguments);
    let bound = "accepted: at most 1048576 bytes";
    let long = format!("imbrex: long.toml: the file has {FILE_BYTES} bytes; {bound}");
    for arguments in [
        "create long.toml --data data",
        "serve long.toml --emulate --socket s",
        "run long.toml",
        "compare --trace synthetic:wdev-like/1000 --systems long.toml",
        "drive bench long.toml",
        "drive fio long.toml job.fio",
        "trace synth long.toml out.csv",
    ] {
        let job = format!("imbrex: job.fio: the file has {FILE_BYTES} bytes; {bound}");
        let expected = if arguments.contains("job.fio") { &job } else { &long };
        let said = said(arguments);
        assert!(said.replace("cannot open ", "") == *expected, "{arguments}: {said}");
    }
    // The length of a pipe or a device is known when it has been read.
    let more = format!("there are more than 1048576 bytes; {bound}");
    let expected = format!("imbrex: /dev/zero: {more}");
    assert_eq!(said("create /dev/zero --data data"), expected);
    let expected = format!("imbrex: /dev/stdin: {more}");
    assert_eq!(said("create /dev/stdin --data data < /dev/zero"), expected);
}

fn disk(text: &mut String, name: &str) {
    writeln!(text, "[[node]]\nname = '{name}'\nkind = 'disk'\ndrive = '850evo'").expect("text");
}

#[test]
fn an_error_about_many_names_is_short() {
    let folder = tempfile::tempdir().expect("a folder");
    let create = |text: &str| {
        std::fs::write(folder.path().join("s.toml"), text).expect("a file");
        failure(folder.path(), "create s.toml --data data")
    };
    let nodes = |count: usize| {
        let mut text = "name = 'many'\n".to_string();
        (0..count).for_each(|number| disk(&mut text, &format!("n{number}")));
        text
    };
    assert_eq!(
        create(&nodes(15_000)),
        "imbrex: s.toml: the stack has 15000 nodes; accepted: at most 256"
    );
    assert_eq!(
        create(&nodes(64)),
        "imbrex: s.toml: the stack has 64 tops (n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 54 more)"
    );
    let mut text = nodes(0);
    disk(&mut text, &"x".repeat(500_000));
    let said = create(&(text.clone() + &text["name = 'many'\n".len()..]));
    assert!(said.len() < 10_000, "{} bytes", said.len());
    assert!(said.starts_with("imbrex: s.toml: two nodes are named `xxx"));
    assert!(said.ends_with("more bytes"), "{}", &said[said.len() - 100..]);
}

#[test]
fn a_sweep_has_a_bounded_number_of_combinations() {
    let folder = tempfile::tempdir().expect("a folder");
    let values = (1..=60).map(|n| format!("'{n} MiB'")).collect::<Vec<_>>();
    let values = values.join(", ");
    let text = format!(
        "name = 'e'\ntitle = 't'\nsystems = ['lru']\n[workload]\npath = 'synthetic:wdev-like'\n[sweep]\n\
         'cache.capacity' = [{values}]\n'cache.zone' = [{values}]\n'translation.persistent_cache' = [{values}]\n"
    );
    std::fs::write(folder.path().join("e.toml"), text).expect("a file");
    assert_eq!(
        failure(folder.path(), "run e.toml"),
        "imbrex: e.toml: [sweep] has too many combinations of values; accepted: at most 10000"
    );
}
