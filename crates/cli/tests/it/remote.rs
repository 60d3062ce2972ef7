//! Stacks whose disks are at other servers: what `create`, `serve`, `replace` and `check` accept of them.

use crate::served::{Place, Served, disconnect, failure, imbrex, run};
use std::fs;
use std::path::Path;

/// A server of one disk of so many MiB, in a folder of its own.
struct DiskServer {
    place: Place,
    served: Option<Served>,
}

impl DiskServer {
    fn new(mib: u32) -> DiskServer {
        let place = Place::new();
        place.create("cmr-only", &format!("{mib}MiB"), &[]);
        let served = Some(place.serve("cmr-only"));
        DiskServer { place, served }
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.place.socket())
    }

    fn kill_nine(&mut self) {
        self.served.take().expect("a server").kill_nine();
    }

    fn start(&mut self) {
        self.served = Some(self.place.serve("cmr-only"));
    }
}

impl Drop for DiskServer {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            served.signal("KILL");
        }
    }
}

fn disk(name: &str, backing: &str, more: &str) -> String {
    format!(
        "[[node]]\nname = '{name}'\nkind = 'disk'\ndrive = 'wd-4tb-7200'\nbacking = '{backing}'\n{more}\n"
    )
}

/// Writes a stack file; answers its path.
fn written(place: &Place, text: &str) -> String {
    let path = place.path("stack.toml");
    fs::write(&path, text).expect("a file");
    path
}

fn mirror(place: &Place, backings: [&str; 2]) -> String {
    let disks = [disk("one", backings[0], ""), disk("two", backings[1], "")].concat();
    let array =
        "[[node]]\nname = 'array'\nkind = 'raid1'\nbelow = ['one', 'two']\nlost_after_s = 2\n";
    written(place, &format!("name = 'mirror'\n{disks}{array}"))
}

fn create(place: &Place, stack: &str) -> std::process::Output {
    run(&["create", stack, "--data", &place.data()])
}

fn created(place: &Place, stack: &str) {
    let output = create(place, stack);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn served(place: &Place, stack: &str, data: &str, more: &[&str]) -> Served {
    let socket = place.socket();
    let arguments = [&["serve", stack, "--data", data, "--socket", &socket], more].concat();
    Served::start(imbrex().args(arguments), Path::new(&socket))
}

#[test]
fn addresses_that_lead_to_no_disk_are_one_error() {
    let place = Place::new();
    let small = DiskServer::new(1);
    let (gone, small_uri) = (place.path("none"), small.uri());
    let other = small_uri.replace("///?", "///other?");
    for (backing, words) in [
        ("nbds://a/x", "only nbd and nbd+unix are spoken"),
        ("http://a/x", "only nbd and nbd+unix are spoken"),
        ("nbd://a:x/y", "the port is no number"),
        ("nbd+unix:///x", "it names no socket"),
        ("nbd://imbrex.invalid/x", "failed to lookup address"),
        ("nbd://127.0.0.1:1/x", "Connection refused"),
        (&format!("nbd+unix:///x?socket={gone}"), "No such file"),
        (&other, "the server has no export `other`; accepted: `cmr-only`"),
    ] {
        let stack = written(&place, &format!("name = 'far'\n{}", disk("one", backing, "")));
        let said = failure(&create(&place, &stack));
        assert!(said.starts_with("imbrex: node `one`: ") && said.contains(words), "{said}");
        assert!(!Path::new(&place.data()).exists(), "nothing is made");
    }
    for (more, words) in [
        ("reconnect_s = 86401", "reconnect_s"),
        ("resend_max = '1 KiB'", "resend_max = 1024 B; accepted: from 1 MiB to 64 GiB"),
    ] {
        let stack = written(&place, &format!("name = 'far'\n{}", disk("one", &small_uri, more)));
        let said = failure(&create(&place, &stack));
        assert!(said.contains(words), "{said}");
    }
    let file = place.path("near.img");
    fs::File::create(&file).and_then(|it| it.set_len(1 << 20)).expect("a file");
    let near = format!("name = 'near'\n{}", disk("one", &file, "reconnect_s = 3"));
    let said = failure(&create(&place, &written(&place, &near)));
    assert!(said.contains("reconnect_s is about a disk at another server"), "{said}");
    let large = DiskServer::new(24);
    let twice = mirror(&place, [&large.uri(), &large.uri()]);
    let said = failure(&create(&place, &twice));
    assert!(said.contains("is the disk of node `one` already"), "{said}");
}

#[test]
fn an_export_that_is_used_short_or_read_only_is_refused() {
    let place = Place::new();
    let (mut one, two) = (DiskServer::new(24), DiskServer::new(24));
    let stack = mirror(&place, [&one.uri(), &two.uri()]);
    created(&place, &stack);
    // Both are members of an image now.
    let other = Place::new();
    let again = mirror(&other, [&one.uri(), &two.uri()]);
    let said = failure(&create(&other, &again));
    assert!(said.contains("holds data; accepted: a file, block device or export"), "{said}");
    assert!(said.contains("qemu-io -f raw -c 'write -z 0 1M'"), "{said}");
    // A server that lets nobody write is no disk of a stack that writes; the mirror goes on with the other one.
    one.kill_nine();
    let (data, socket) = (one.place.data(), one.place.socket());
    let read_only = ["serve", "cmr-only", "--data", &data, "--socket", &socket, "--read-only"];
    let shown = Served::start(imbrex().args(read_only), Path::new(&socket));
    let server = served(&place, &stack, &place.data(), &[]);
    let said = server.said();
    assert!(said.contains("can only be read; accepted: an export that can be written"), "{said}");
    server.stop();
    shown.signal("KILL");
    // Another disk behind the address is refused by its label, or is too short.
    let short = DiskServer::new(4);
    let moved = place.path("moved");
    fs::rename(short.place.socket(), &moved).expect("a socket");
    fs::remove_file(&socket).expect("a socket");
    fs::rename(&moved, &socket).expect("a socket");
    let server = served(&place, &stack, &place.data(), &[]);
    assert!(server.said().contains("the disk needs"), "{}", server.said());
    server.stop();
}

/// Nobody can lock a disk at another server; its label says who had it last.
#[test]
fn a_start_elsewhere_wants_force() {
    let place = Place::new();
    let (one, two) = (DiskServer::new(24), DiskServer::new(24));
    let stack = mirror(&place, [&one.uri(), &two.uri()]);
    created(&place, &stack);
    let server = served(&place, &stack, &place.data(), &[]);
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[7; 4096]), 0);
    disconnect(client);
    server.stop();
    let copy = place.path("copy");
    fs::create_dir(&copy).expect("a folder");
    fs::copy(place.path("data/image"), place.path("copy/image")).expect("an image");
    let socket = place.socket();
    let elsewhere = ["serve", &stack, "--data", &copy, "--socket", &socket];
    let said = failure(&run(&elsewhere));
    assert!(said.contains("node `one`: ") && said.contains("another server had it last"), "{said}");
    let server = served(&place, &stack, &copy, &["--force"]);
    let mut client = server.client();
    assert_eq!(client.read(0, 4096).expect("data"), [7; 4096]);
    disconnect(client);
    server.stop();
    // It is the other way round now, and without force where it was served last.
    let said = failure(&run(&["serve", &stack, "--data", &place.data(), "--socket", &socket]));
    assert!(said.contains("another server had it last"), "{said}");
    served(&place, &stack, &copy, &[]).stop();
    let output = run(&["check", &copy, "--data"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// One disk of a mirror is replaced by one at another server, whose server dies again and again; then the other
/// one is lost.
#[test]
fn a_disk_at_another_server_takes_the_place_of_a_file() {
    let place = Place::new();
    let mut far = DiskServer::new(25);
    let file = place.path("near.img");
    fs::File::create(&file).and_then(|it| it.set_len((24 << 20) + 8192)).expect("a file");
    let other = place.path("other.img");
    fs::File::create(&other).and_then(|it| it.set_len((24 << 20) + 8192)).expect("a file");
    let stack = mirror(&place, [&file, &other]);
    created(&place, &stack);
    let server = served(&place, &stack, &place.data(), &[]);
    let control = format!("{}.control", place.socket());
    let command = |words: &[&str]| run(&[&["control", &control], words].concat());
    let ok = |words: &[&str]| {
        let output = command(words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut client = server.client();
    assert_eq!(client.write(0, 8 << 12, &[9; 4096]), 0);
    ok(&["two", "fail"]);
    let wrong = command(&["two", "replace", "nbd://127.0.0.1:1/x"]);
    let said = failure(&wrong);
    assert!(said.contains("Connection refused"), "{said}");
    ok(&["two", "replace", &far.uri()]);
    ok(&["array", "rebuild"]);
    for round in 0..5u8 {
        assert_eq!(client.write(0, u64::from(round) << 12, &[round; 4096]), 0);
        far.kill_nine();
        far.start();
        assert_eq!(client.write(0, u64::from(20 + round) << 12, &[round; 4096]), 0);
    }
    ok(&["one", "fail"]);
    for round in 0..5u8 {
        assert_eq!(client.read(u64::from(round) << 12, 4096).expect("data"), [round; 4096]);
        assert_eq!(client.read(u64::from(20 + round) << 12, 4096).expect("data"), [round; 4096]);
    }
    assert_eq!(client.read(8 << 12, 4096).expect("data"), [9; 4096]);
    disconnect(client);
    let said = server.said();
    assert!(said.matches("it is there again").count() >= 5, "{said}");
    server.stop();
}
