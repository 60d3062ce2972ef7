//! Bad input gives one line on standard error that names the file, the line and field or the
//! option, the value, and what is accepted; never a panic. Status 1 says that the command failed,
//! 2 that it was called wrongly.

use crate::served::status_of;
use std::path::Path;
use std::process::{Command, Output};

const MSR_READ: &str = "128166386787582087,mds,1,Read,1211904,4608,1331\n";
const SIZE: &str = "a size is written like `4KiB`, `256MiB`, `20GiB` (binary; a bare k, M, G, T is \
                    binary too) or `20GB`, `8TB` (decimal)";

fn imbrex(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

/// Runs `compare` in a folder with the given files; checks that it fails, with status 2 where the message
/// begins with an option, prints nothing else but which runs had ended before, and returns its message.
fn failure(files: &[(&str, &[u8])], arguments: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).expect("a file");
    }
    let arguments: Vec<&str> =
        ["compare"].into_iter().chain(arguments.split_whitespace()).collect();
    let output = imbrex(folder.path(), &arguments);
    let message = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), status_of(&message), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result");
    let mut lines = message.lines().skip_while(|line| line.starts_with("  done: "));
    let line = lines.next().expect("a line");
    assert!(lines.next().is_none(), "more than one line: {message}");
    let message = line.strip_prefix("imbrex: ").expect("the name of the command");
    message.to_string()
}

/// The message about a trace.
fn of_trace(trace: &str) -> String {
    failure(&[("t.csv", trace.as_bytes())], "--trace t.csv")
}

/// The message about the ready-made `lru` with one text in it replaced, and the number of the
/// first line that changed.
fn of_stack(from: &str, to: &str) -> (String, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = imbrex(folder.path(), &["systems", "--show", "lru"]);
    let original = String::from_utf8(output.stdout).expect("text");
    let changed = original.replace(from, to);
    let lines = original.lines().zip(changed.lines());
    let line = 1 + lines.take_while(|(a, b)| a == b).count();
    let files = [("t.csv", MSR_READ.as_bytes()), ("s.toml", changed.as_bytes())];
    (failure(&files, "--trace t.csv --systems s.toml"), line)
}

/// The message about options over a trace that is in order.
fn of_options(options: &str) -> String {
    let options = format!("--trace t.csv {options}");
    failure(&[("t.csv", MSR_READ.as_bytes())], &options)
}

#[test]
fn a_truncated_trace() {
    assert_eq!(
        of_trace(&format!("{MSR_READ}128166386816018591,mds,1,Wri")),
        "t.csv, line 2: the line ends after 4 fields; accepted: 7 fields: Timestamp, Hostname, \
         DiskNumber, Type, Offset, Size, ResponseTime"
    );
    let whole = zstd_frame(MSR_READ.repeat(100).as_bytes());
    let half = &whole[..whole.len() / 2];
    assert_eq!(
        failure(&[("t.csv.zst", half)], "--trace t.csv.zst"),
        "t.csv.zst: the zstd stream cannot be read to its end after 0 records: incomplete frame"
    );
}

/// A zstd frame with one raw block (RFC 8878, section 3.1.1): magic, header of a single segment
/// with a size of two bytes, block header, data.
fn zstd_frame(data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x60];
    frame.extend(((data.len() - 256) as u16).to_le_bytes());
    frame.extend(&((data.len() as u32) << 3 | 1).to_le_bytes()[..3]);
    frame.extend(data);
    frame
}

#[test]
fn a_field_that_is_no_number() {
    assert_eq!(
        of_trace(&format!("{MSR_READ}128166386816018591,mds,1,Write,321x,16384,2326\n")),
        "t.csv, line 2, field 5 (Offset): \"321x\" is not a number; accepted: an unsigned \
         integer, in bytes"
    );
}

#[test]
fn an_offset_beyond_the_device() {
    assert_eq!(
        of_trace(&format!("{MSR_READ}128166386816018591,mds,1,Write,9000000000000,16384,2326\n")),
        "t.csv: record 2: write of 16384 bytes at offset 9000000000000 ends beyond the device of \
         500107862016 bytes; use a larger device, or --fit wrap or --fit scale"
    );
}

#[test]
fn an_unknown_column() {
    let columns = [("t.csv", b"a,b,c\n1,2,3\n".as_slice())];
    assert_eq!(
        failure(&columns, "--trace t.csv --format csv --map off=offset,len=b"),
        "column map \"off=offset,len=b\": unknown column \"offset\"; accepted: a, b, c or a \
         number from 1 to 3"
    );
    assert_eq!(
        failure(&columns, "--trace t.csv --format csv --map off=a,length=b"),
        "column map \"off=a,length=b\": unknown key \"length\"; accepted: time, op, off, len, \
         dev, resp, fua"
    );
}

#[test]
fn an_empty_file_and_none() {
    assert_eq!(
        of_trace(""),
        "t.csv: the file is empty; accepted: a trace with at least one request"
    );
    assert_eq!(failure(&[], "--trace t.csv"), "t.csv: No such file or directory (os error 2)");
}

#[test]
fn an_unknown_system_suggests_the_nearest() {
    assert_eq!(
        of_options("--systems lru,poer"),
        "unknown system `poer`; did you mean `pore`? (known: cmr-only, smr-only, lru, lru-band, \
         pore-cf, pore-pf, pore, ride, lru-archive, pore-archive, ride-archive, hwsr, s-block, hdd, spanned, \
         striped, raid1, raid4, raid5, raid4smr, raid4smr-chain, dedicated, split, split-local, split-dedicated, four-disks, four-disks-equal, host-aware, at-ic, idler, idler-buffer, cmr-buffer; a drive of `imbrex systems`; or the path of a TOML file)"
    );
    assert_eq!(
        of_options("--systems zebra"),
        "unknown system `zebra` (known: cmr-only, smr-only, lru, lru-band, pore-cf, pore-pf, \
         pore, ride, lru-archive, pore-archive, ride-archive, hwsr, s-block, hdd, spanned, \
         striped, raid1, raid4, raid5, raid4smr, raid4smr-chain, dedicated, split, split-local, split-dedicated, four-disks, four-disks-equal, host-aware, at-ic, idler, idler-buffer, cmr-buffer; a drive of `imbrex systems`; or the path of a TOML file)"
    );
}

#[test]
fn a_policy_in_python_is_refused_in_a_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.csv"), MSR_READ).expect("a file");
    let refused = |arguments: &[&str], status, words: &str| {
        let output = imbrex(folder.path(), arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {message}");
        assert_eq!(message, format!("imbrex: {words}\n"), "{arguments:?}");
    };
    let set = ["--set", "cache.policy=python:mine"];
    let brought_none = "node `cache`: policy = \"python:mine\" is code of a program, which has brought none of that \
                        name; accepted: a policy of imbrex, or in Python one of `policies`";
    let compare = ["compare", "--trace", "t.csv", "--systems", "lru"];
    refused(&[&compare[..], &set].concat(), 2, brought_none);
    let create = ["create", "lru", "--data", "image", "--size", "1GiB"];
    let cannot_be_served = "node `cache`: policy = \"python:mine\" cannot be served: it is there to be tried in \
                            simulations; accepted: a policy of imbrex";
    refused(&[&create[..], &set].concat(), 1, cannot_be_served);
    assert!(!folder.path().join("image").exists());
}

#[test]
fn a_misspelt_key_names_its_line_and_suggests_the_nearest() {
    let (message, line) = of_stack("policy = ", "polcy = ");
    let expected = format!("s.toml:{line}: cache: unknown field `polcy`, expected one of `name`, ");
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.ends_with("; did you mean `policy`?"), "{message}");
    let (message, line) = of_stack("policy = \"lru\"", "policy = \"lur\"");
    assert_eq!(
        message,
        format!(
            "s.toml:{line}: cache.policy = \"lur\"; did you mean \"lru\"?; accepted: \"lru\", \
             \"unlimited\", \"fifo\", \"clock\", \"sieve\", \"s3-fifo\", \"2q\", \"arc\", \"lru-band\", \
             \"pore\", \"most\", \"sac\", \"ride\", \"opt\""
        )
    );
    let message = of_options("--set cache.capacty=40MiB");
    let expected = "--set cache.capacty=\"40MiB\": unknown field `capacty`, expected one of ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.ends_with("; did you mean `capacity`?"), "{message}");
    assert_eq!(
        of_options("--set cahce.capacity=40MiB --systems lru"),
        "--set cahce.capacity: no compared stack has a node `cahce`; did you mean `cache`? \
         (known: smr, translation, ssd, cache)"
    );
}

/// What a cache takes for its capacity.
const CAPACITY: &str = "; accepted: a size of at least 4 KiB, or a share";

#[test]
fn a_size_without_a_unit() {
    assert_eq!(
        of_options("--set cache.capacity=40"),
        format!("--set cache.capacity=40: `40` has no unit: {SIZE}{CAPACITY}")
    );
    for value in ["2000", "\"2000\""] {
        let (message, line) = of_stack("\"2 %\"", value);
        let start = format!("s.toml:{line}: cache.capacity = {value}: `2000` has no unit: ");
        assert_eq!(message, format!("{start}{SIZE}{CAPACITY}"));
    }
}

#[test]
fn values_out_of_range() {
    assert_eq!(
        of_options("--set cache.period_persistent_caches=0"),
        "node `cache`: period_persistent_caches = 0; accepted: a number above 0"
    );
    assert_eq!(
        of_options("--set cache.capacity=200%"),
        "--set cache.capacity=\"200%\": `200%` is not a share: a share is written like `2 %`, \
         `1/256 of touched bands` or `1/256 of written bands`; accepted: a size of at least 4 KiB, or a share"
    );
    let unknown = of_options("--set smr.drive=st5000as001");
    let start =
        "node `smr`: unknown drive `st5000as001`: did you mean `st5000as0011`?; known are 850evo, ";
    assert!(unknown.starts_with(start), "{unknown}");
    assert!(unknown.ends_with(", or the path of a TOML file"), "{unknown}");
    assert_eq!(
        of_options("--set nonsense"),
        "`nonsense` is not a setting; write NODE.KEY=VALUE, such as cache.capacity=40MiB"
    );
}

#[test]
fn counting_alone_has_no_queue_and_no_time() {
    assert_eq!(
        of_options("--untimed --queue-depth 8"),
        "--untimed with --queue-depth 8: disks that answer at once have no queue; accepted: 1"
    );
    assert_eq!(
        of_options("--untimed --systems st8000as0002"),
        "--untimed: system `st8000as0002`: node `translation`: idle_after = \"1 s\" cleans bands when nothing \
         was asked for so long, so its counters depend on time; accepted: idle_after = \"off\""
    );
    assert_eq!(
        of_options("--untimed --systems at-ic"),
        "--untimed: system `at-ic`: node `translation`: blocking_slice = \"500 ms\" cleans bands for so long \
         at a time, so its counters depend on time; accepted: a translation without the key"
    );
    assert_eq!(
        of_options("--untimed --systems four-disks"),
        "--untimed: system `four-disks`: node `queue-0`: kind = \"scheduler\" orders requests by how long they \
         have waited, so its counters depend on time; accepted: a stack without such a node"
    );
    assert_eq!(
        of_options("--untimed --systems lru-archive --set translation.idle_after=off"),
        "--untimed: system `lru-archive`: node `translation`: journal_every_records = 240 holds up what comes \
         after so many records, so its counters depend on time; accepted: journal_every_records = 0, or the \
         translation right below the host"
    );
    assert_eq!(
        of_options("--untimed --systems lru --set cache.durable=true"),
        "--untimed: system `lru`: node `cache`: durable = true writes a mark when nothing was written for some \
         time, so its counters depend on time; accepted: durable = false"
    );
}

#[test]
fn a_latency_log_of_fio_is_pointed_to_the_command_that_reads_it() {
    let said = of_trace("18, 17789, 0, 4096, 17179869184\n36, 17650, 0, 4096, 8589934592\n");
    assert!(
        said.contains(
            "; a latency log of fio says how a drive answered: `imbrex drive fit` reads it; "
        ),
        "{said}"
    );
    let said = of_trace("18,17789,0,4096,17179869184\n36,17650,7,4096,8589934592\n");
    assert!(!said.contains("drive fit"), "{said}");
}

#[test]
fn a_bad_sweep_or_pattern_names_what_is_wrong() {
    let form = "accepted: NODE.KEY=A,B,C, such as cache.capacity=1%,2%,5%";
    for (given, what) in [
        ("cache.capacity", "there are no values"),
        ("cache.capacity=1%,", "a value is empty"),
        ("capacity=1%", "the key is of no node"),
        ("cache.capacity=1%,2%,1%", "\"1%\" is there twice"),
    ] {
        assert_eq!(
            of_options(&format!("--sweep {given}")),
            format!("--sweep {given}: {what}; {form}")
        );
    }
    assert_eq!(
        of_options("--sweep cache.capacity=1% --sweep cache.capacity=2%"),
        "--sweep cache.capacity=2%: `cache.capacity` is swept twice; accepted: a key once"
    );
    assert!(
        of_options("--systems lru --sweep log.capacity=1%,2%")
            .starts_with("--sweep log.capacity: no compared stack has a node `log`")
    );
    let many = (0..101).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(
        of_options(&format!("--systems lru --sweep cache.a={many} --sweep cache.b={many}")),
        "--sweep: 10201 runs of 1 systems; accepted: at most 10000"
    );
    assert!(
        of_options("--systems q*")
            .starts_with("--systems q*: no ready-made stack has such a name; accepted: ")
    );
    assert!(of_options("--systems lru --set pore:cache.capacity=1%").starts_with(
        "--set pore:cache.capacity=1%: `pore` is not compared; accepted: STACK:NODE.KEY=VALUE"
    ));
    assert!(
        of_options("--systems lru,smr-only --set smr-only:cache.capacity=1%")
            .starts_with("--set cache.capacity: no stack `smr-only` has a node `cache`")
    );
    assert!(
        of_options("--systems lru --print-experiment --sweep log.capacity=1%,2%")
            .starts_with("--sweep log.capacity: no compared stack has a node `log`")
    );
    assert_eq!(
        of_options("--new-blocks"),
        "--new-blocks: there is one round; accepted: with --repeat of 2 or more"
    );
    assert_eq!(
        of_options("--bound --warm-up 10"),
        "--bound with --warm-up 10: the bound is of all requests; accepted: one of them"
    );
    assert!(of_options("--warm-up 100000000").contains("there is no request behind it"));
    assert_eq!(
        of_options("--print-experiment --untimed"),
        "--print-experiment with --untimed: an experiment file has no key for it; accepted: without --untimed"
    );
}

#[test]
fn a_command_called_wrongly_ends_with_status_2() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, part) in [
        ("compare --trace=x --repeat=0", "'0' for '--repeat <N>': 0 is not in 1..=1000000"),
        ("compare --trace=x --warm-up=0", "'0' for '--warm-up <PART>': `0`: accepted: a count"),
        ("compare --trace=x --warm-up=120%", "accepted: a share above 0 and below 100 %"),
        ("compare --colour", "unexpected argument '--colour'"),
        ("compare --trace=x --queue-depth=0", "'0' for '--queue-depth <N>': 0 is not in 1.."),
        ("compare --trace=x --drive-scale=0", "'0' for '--drive-scale <N>': 0 is not in 1.."),
        ("compare --trace=x --limit=0", "'0' for '--limit <N>': 0 is not in 1.."),
        ("compare --queue-depth=many", "'many' for '--queue-depth <N>'"),
        ("compare --trace=x --untimed --streams=2", "cannot be used with '--streams <N>'"),
        ("compare --trace=x --untimed --open-loop", "cannot be used with '--open-loop'"),
        (
            "compare --trace=x --untimed --series=cache.dirty_blocks",
            "cannot be used with '--series",
        ),
        ("comprae --trace=x", "similar subcommands exist: 'completions', 'compare'"),
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = imbrex(folder.path(), &arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn states_that_do_not_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let of = |options: &str| {
        let options = format!(
            "compare --trace synthetic:uniform-random-write/200 --fit wrap --quiet --json {options}"
        );
        let output = imbrex(place, &options.split(' ').collect::<Vec<_>>());
        let message = String::from_utf8(output.stderr).expect("text");
        (output.status.code(), message)
    };
    let fails = |options: &str, status, part: &str| {
        let (code, message) = of(options);
        assert!(code == Some(status) && message.contains(part), "{options}: {code:?} {message}");
        assert!(status != 1 || message.lines().count() == 1, "{message}");
    };
    let (code, message) = of("--systems lru --limit 300 --warm-up 100 --save-state x.state");
    assert_eq!(code, Some(0), "{message}");
    let whole = std::fs::read(place.join("x.state")).expect("a state");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(place.join(name), bytes).expect("a file");
    };
    write("cut.state", &whole[..whole.len() / 2]);
    let mut other = whole.clone();
    other[8] = 2;
    write("newer.state", &other);
    other[8] = 1;
    other[whole.len() / 2] ^= 1;
    write("damaged.state", &other);
    write("text.state", b"hello");
    std::fs::create_dir(place.join("folder")).expect("a folder");
    let saved = "a file that --save-state has written";
    for (file, found) in [
        ("cut.state", format!("cut.state: it is cut; accepted: {saved}")),
        ("damaged.state", format!("it is damaged: its checksum is wrong; accepted: {saved}")),
        ("text.state", format!("it is not the state of a simulated stack; accepted: {saved}")),
        ("newer.state", "it has format version 2; accepted: 1, which".to_string()),
        ("folder", "folder: Is a directory".to_string()),
        ("none.state", "none.state: No such file".to_string()),
    ] {
        fails(&format!("--systems lru --limit 300 --state {file}"), 1, &found);
    }
    fails(
        "--systems pore --limit 300 --state x.state",
        1,
        "it is of system `lru`; accepted: a state of `pore`",
    );
    let another = "--systems lru --limit 300 --set cache.capacity=2MiB --state x.state";
    fails(
        another,
        1,
        "it is of a system `lru` that was built in another way; accepted: the same keys",
    );
    fails(
        "--systems lru --limit 300 --seed 7 --state x.state",
        1,
        "it is of seed 1; accepted: a state of seed 7",
    );
    let (code, message) = of("--systems hdd --limit 300 --warm-up 100 --save-state hdd.state");
    assert_eq!(code, Some(0), "{message}");
    fails("--systems hdd --limit 50 --state hdd.state", 1, "accepted: a longer trace");
    fails("--systems lru --save-state y.state", 2, "--warm-up <PART>");
    let two = "--save-state: a state is of one system, and 2 are to be compared; accepted: one";
    fails("--systems lru,pore --warm-up 9 --save-state y.state", 2, two);
    fails("--systems lru --state x.state --warm-up 9", 2, "cannot be used with");
    fails("--systems lru --warm-up 9 --save-state folder", 1, "folder");
    let left: Vec<_> = std::fs::read_dir(place).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 7, "nothing is half written: {left:?}");
}
