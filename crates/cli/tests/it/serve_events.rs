//! `imbrex serve --on-event`: the command that is run for what happens, and files that lose their names.

use crate::client::FLUSH;
use crate::control::{done, serve};
use crate::serve_members::{BLOCK, member};
use crate::served::{Place, Served, disconnect, imbrex, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Has the shell write what it is told into a file, all at once. One such variable is of the build.
const ENV: &str = "env -u IMBREX_COMMIT -u IMBREX_VERSION -u IMBREX_REQUIRE_TOOLS -u IMBREX_TEST_SUMMARY | grep ^IMBREX_ | sort > $HERE/new && mv $HERE/new $HERE/$IMBREX_EVENT";

/// The text of a file, as soon as it is there.
fn text_of(path: &str, server: &Served) -> String {
    let since = Instant::now();
    loop {
        match fs::read_to_string(path) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(since.elapsed() < PATIENCE, "no {path}: {}", server.said()),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a server says something.
fn wait_for(server: &Served, words: &str) {
    let since = Instant::now();
    while !server.said().contains(words) {
        assert!(since.elapsed() < PATIENCE, "not said: {words}: {}", server.said());
        thread::sleep(Duration::from_millis(10));
    }
}

/// The text of a command that works in the folder of a place.
fn in_place(place: &Place, text: &str) -> String {
    let here = place.path("");
    text.replace("$HERE/", &here)
}

/// A buffer that keeps copies on flash of what hosts read: it goes on without.
const COPIES: &str = r#"
name = "copies"

[[node]]
name = "ssd"
kind = "disk"
drive = "850evo"

[[node]]
name = "disk"
kind = "disk"
drive = "wd-4tb-7200"

[[node]]
name = "copies"
kind = "read-cache"
below = { flash = "ssd" }
capacity = "4 MiB"

[[node]]
name = "buffer"
kind = "memory-buffer"
capacity = "1 MiB"
below = { below = "disk", copies = "copies" }
"#;

#[test]
fn a_lost_disk_of_a_stack_that_goes_on_runs_the_command() {
    let place = Place::new();
    let stack = place.path("copies.toml");
    fs::write(&stack, COPIES).expect("a stack");
    let command = in_place(&place, ENV);
    let more = ["--emulate", "--size", "64MiB", "--on-event", &command];
    let server = serve(&place, &stack, &more);
    done(&place, &["ssd", "fail"]);
    let told = text_of(&place.path("disk-lost"), &server);
    let sentence = "node `ssd`: the disk is lost; the nodes above go on without it where they can (`imbrex control \
                    SOCKET status` tells)";
    let expected = format!(
        "IMBREX_COUNT=1\nIMBREX_DETAIL={sentence}\nIMBREX_EVENT=disk-lost\nIMBREX_NODE=ssd\nIMBREX_STACK=copies\n"
    );
    assert_eq!(told, expected);
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[3; BLOCK]), 0, "it goes on");
    disconnect(client);
    done(&place, &["ssd", "fail"]);
    assert_eq!(server.said().matches(sentence).count(), 1, "{}", server.said());
    server.stop();
}

#[test]
fn a_command_that_takes_long_holds_up_nothing() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let (data, pid) = (place.data(), place.path("pid"));
    let command = in_place(&place, "echo $$ > $HERE/pid; exec sleep 1000");
    let server = serve(&place, "cmr-only", &["--data", &data, "--on-event", &command]);
    fs::remove_file(member(&place, "cmr")).expect("a member");
    let sleeper = text_of(&pid, &server);
    let since = Instant::now();
    let mut client = server.client();
    for block in 0..64 {
        assert_eq!(client.write(0, block * BLOCK as u64, &[block as u8; BLOCK]), 0);
        assert_eq!(client.read(block * BLOCK as u64, BLOCK as u32), Ok(vec![block as u8; BLOCK]));
    }
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    disconnect(client);
    server.stop();
    assert!(since.elapsed() < PATIENCE, "it was waited for");
    let sleeper = sleeper.trim();
    let open = fs::read_dir(format!("/proc/{sleeper}/fd")).expect("it still runs");
    for entry in open {
        let target = fs::read_link(entry.expect("a descriptor").path()).expect("a link");
        let target = target.display().to_string();
        let is_servers = ["socket:", "anon_inode:", &data].iter().any(|it| target.starts_with(it));
        assert!(!is_servers, "{target} is open in it");
    }
    let sleeper = sleeper.parse().ok().and_then(Pid::from_raw).expect("a process");
    kill_process(sleeper, Signal::KILL).expect("it was left to itself");
}

#[test]
fn a_file_that_is_deleted_is_told_of_while_nobody_asks_and_the_disk_stays_in_use() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let (data, path) = (place.data(), member(&place, "cmr"));
    let command = in_place(&place, ENV);
    let server = serve(&place, "cmr-only", &["--data", &data, "--on-event", &command]);
    let away = place.path("away");
    fs::rename(&path, &away).expect("a member");
    wait_for(&server, &format!("node `cmr`: {path} was moved away: it is served until"));
    fs::rename(&away, &path).expect("a member");
    wait_for(&server, &format!("node `cmr`: {path} is there again"));
    let status = done(&place, &["cmr", "status"]);
    assert!(!status.contains("  file: "), "{status}");
    text_of(&place.path("file-deleted"), &server);
    fs::remove_file(place.path("file-deleted")).expect("what was told");

    fs::remove_file(&path).expect("a member");
    let deleted = format!("node `cmr`: {path} was deleted: it is served until the server ends");
    wait_for(&server, &deleted);
    let told = text_of(&place.path("file-deleted"), &server);
    for line in [
        &format!("IMBREX_DETAIL={deleted}"),
        "IMBREX_EVENT=file-deleted\n",
        "IMBREX_NODE=cmr\n",
        "IMBREX_STACK=cmr-only\n",
        &format!("IMBREX_IMAGE={data}\n"),
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[5; BLOCK]), 0);
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    assert_eq!(client.read(0, BLOCK as u32), Ok(vec![5; BLOCK]));
    disconnect(client);
    let status = done(&place, &["cmr", "status"]);
    assert!(status.starts_with("cmr: in use\n"), "{status}");
    assert!(status.contains(&format!("\n  file: {path} was deleted: ")), "{status}");
    let said = server.said();
    server.stop();
    assert_eq!(said.matches(&deleted).count(), 1, "{said}");
}

/// Processor time of a process so far, in ticks of 10 ms.
fn ticks(server: &Served) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).expect("a process");
    let fields = stat.rsplit(')').next().expect("fields").split_whitespace();
    fields.skip(11).take(2).map(|field| field.parse::<u64>().expect("ticks")).sum()
}

#[test]
fn looking_at_files_costs_an_idle_server_next_to_nothing() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let server = place.serve("cmr-only");
    thread::sleep(Duration::from_millis(500));
    let before = ticks(&server);
    thread::sleep(Duration::from_secs(5));
    let used = ticks(&server) - before;
    assert!(used <= 10, "{used} ticks in 5 s");
    server.stop();
}

#[test]
fn a_command_that_cannot_be_is_said_once_and_one_of_no_words_is_refused() {
    let place = Place::new();
    let more = ["--emulate", "--size", "16MiB", "--on-event", "/no/such/program", "--allow-faults"];
    let server = serve(&place, "cmr-only", &more);
    done(&place, &["cmr", "fail"]);
    wait_for(
        &server,
        "--on-event: the command for `disk-lost` of node `cmr` ended with exit status: 127",
    );
    assert!(done(&place, &["cmr", "status"]).starts_with("cmr: lost\n"));
    server.signal("TERM");
    let (said, _) = server.wait_and_said();
    assert_eq!(said.matches("--on-event").count(), 1, "{said}");

    // No shell is found.
    let socket = place.socket();
    let mut command = imbrex();
    command.args(["serve", "cmr-only", "--emulate", "--size", "16MiB", "--on-event", "true"]);
    command.args(["--socket", &socket]).env("PATH", "");
    let server = Served::start(&mut command, Path::new(&socket));
    done(&place, &["cmr", "fail"]);
    wait_for(&server, "--on-event: cannot run the command: ");
    assert!(done(&place, &["cmr", "status"]).starts_with("cmr: lost\n"));
    drop(server);

    let output = run(&["serve", "cmr-only", "--emulate", "--socket", &socket, "--on-event", " "]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--on-event") && said.contains("accepted: a shell command"), "{said}");
}

#[test]
fn a_file_that_was_cut_runs_the_command_with_the_reason() {
    let place = Place::new();
    place.create("cmr-only", "8MiB", &[]);
    let (data, path) = (place.data(), member(&place, "cmr"));
    let command = in_place(&place, ENV);
    let server = serve(&place, "cmr-only", &["--data", &data, "--on-event", &command]);
    let file = fs::OpenOptions::new().write(true).open(&path);
    file.and_then(|file| file.set_len(4096)).expect("a cut");
    let mut client = server.client();
    assert!(client.read(1 << 20, BLOCK as u32).is_err());
    disconnect(client);
    let told = text_of(&place.path("disk-lost"), &server);
    let reason = format!("node `cmr`: {path} is lost: it has become shorter, 4096 bytes");
    assert!(told.contains(&format!("IMBREX_DETAIL={reason}")), "{told}");
    server.signal("TERM");
    let (said, (status, _)) = server.wait_and_said();
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(said.matches("node `cmr`").count(), 1, "{said}");
}
