//! What `create` and `serve` refuse, word for word, and that a refusal harms nothing.

use crate::client::FLUSH;
use crate::served::{Place, Served, disconnect, failure, imbrex, run};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// NBD's number for a full device, the same as errno's.
const ENOSPC: u32 = 28;

fn create_failure(place: &Place, arguments: &[&str]) -> String {
    let data = place.data();
    let said = failure(&run(&[&["create", "--data", &data], arguments].concat()));
    assert!(!Path::new(&data).exists(), "an image was made: {said}");
    said
}

#[test]
fn create_refuses_sizes_that_cannot_be() {
    let place = Place::new();
    let rows = [
        ("0", "imbrex: size: 0 B; accepted: one block (4096 B) or more"),
        ("1KiB", "imbrex: size: 1024 B; accepted: one block (4096 B) or more"),
        (
            "64",
            "imbrex: `64` has no unit: a size is written like `4KiB`, `256MiB`, `20GiB` (binary; a bare \
             k, M, G, T is binary too) or `20GB`, `8TB` (decimal)",
        ),
        (
            "6TB",
            "imbrex: size: 6000000000000 B is more than the drive below holds (5000980848640 B)",
        ),
    ];
    for (size, expected) in rows {
        assert_eq!(create_failure(&place, &["pore", "--size", size]), expected);
    }
}

#[test]
fn create_refuses_spare_slots_without_room() {
    let place = Place::new();
    let flash = place.path("flash");
    let backing = format!("ssd.backing={flash}");
    let asked =
        ["lru", "--size", "128MiB", "--set", "cache.capacity=32MiB", "--set", &backing, "--set"];
    std::fs::File::create(&flash).and_then(|file| file.set_len(46_000_000)).unwrap();
    for share in ["2", "-0.1", "nan"] {
        let shown = if share == "nan" { "NaN" } else { share };
        let expected = format!("imbrex: node `cache`: spare_share = {shown}; accepted: 0 to 1");
        let setting = format!("cache.spare_share={share}");
        assert_eq!(create_failure(&place, &[&asked[..], &[&setting]].concat()), expected);
    }
    let expected = "imbrex: node `cache`: spare_share = 0.25: the flash is 5568 KiB too small for so many \
                    spare slots; accepted: at most 0.08";
    assert_eq!(create_failure(&place, &asked[..asked.len() - 1]), expected);
    let data = place.data();
    let created =
        run(&[&["create", "--data", &data], &asked[..], &["cache.spare_share=0.08"]].concat());
    assert!(created.status.success(), "{created:?}");
}

#[test]
fn zones_are_not_served() {
    let place = Place::new();
    let stack = place.path("zoned.toml");
    let text = "name = 'zoned'\nsize = '64 MiB'\n\
                [[node]]\nname = 'smr'\nkind = 'disk'\ndrive = 'st5000as0011'\n\
                [[node]]\nname = 'zones'\nkind = 'host-managed'\nbelow = 'smr'\n\
                zone_size = '16 MiB'\n";
    std::fs::write(&stack, text).unwrap();
    let expected = "imbrex: node `zones`: a host-managed disk cannot be served: NBD has no zones, so a \
                    client could not know where it may write; accepted: stacks that take writes \
                    anywhere, such as `smr-only` (imbrex compare and imbrex drive fio take \
                    host-managed ones)";
    assert_eq!(create_failure(&place, &[&stack]), expected);
    let socket = place.path("socket");
    let serve = ["serve", &stack, "--emulate", "--socket", &socket];
    assert_eq!(failure(&run(&serve)), expected);
}

#[test]
fn a_node_for_each_source_is_not_served() {
    let place = Place::new();
    let expected = "imbrex: node `array`: kind = \"dedicated\" cannot be served: requests of a client have one \
                    address space and no device number to choose a node by; accepted: kind = \"span\", where \
                    each node below is an export of its own too (imbrex compare takes \"dedicated\")";
    assert_eq!(create_failure(&place, &["dedicated"]), expected);
    let socket = place.path("socket");
    let serve = ["serve", "dedicated", "--emulate", "--socket", &socket];
    assert_eq!(failure(&run(&serve)), expected);
}

#[test]
fn create_refuses_stacks_and_settings_that_are_not_there() {
    let place = Place::new();
    let of = |set: &str| create_failure(&place, &["lru", "--size", "64MiB", "--set", set]);
    assert_eq!(
        of("cash.capacity=1MiB"),
        "imbrex: --set cash.capacity: the stack `lru` has no node `cash`; did you mean `cache`? (nodes: smr, \
         translation, ssd, cache)"
    );
    assert_eq!(
        of("cache.policy=opt"),
        "imbrex: node `cache`: policy `opt` must know the future, so it needs a trace"
    );
    assert_eq!(
        of("translation.rewrite=in-place"),
        "imbrex: node `translation`: a persistent cache that rewrites bands in place, without a scratch copy, \
         cannot outlive a power cut; accepted with durability: rewrite = copy-then-home"
    );
    assert_eq!(
        of("cache.durable=false"),
        "imbrex: node `cache`: durable = false; accepted in a stack that is served from files: true, or no \
         such key"
    );
    assert_eq!(
        of("cache=3"),
        "imbrex: `cache=3` is not a setting; write NODE.KEY=VALUE, such as cache.capacity=40MiB"
    );
    let said = of("cache.capactiy=1MiB");
    let start =
        "imbrex: --set cache.capactiy=\"1MiB\": unknown field `capactiy`, expected one of `name`";
    assert!(said.starts_with(start), "{said}");
    assert!(said.ends_with("; did you mean `capacity`?"), "{said}");
    assert_eq!(
        create_failure(&place, &["poer", "--size", "64MiB"]),
        "imbrex: unknown system `poer`; did you mean `pore`? (known: cmr-only, smr-only, lru, lru-band, \
         pore-cf, pore-pf, pore, ride, lru-archive, pore-archive, ride-archive, hwsr, s-block, hdd, spanned, \
         striped, raid1, raid4, raid5, raid4smr, raid4smr-chain, dedicated, split, split-local, split-dedicated, four-disks, four-disks-equal, host-aware, at-ic, idler, idler-buffer, cmr-buffer; a drive of `imbrex systems`; or the path of a TOML file)"
    );
}

#[test]
fn serve_refuses_settings_that_are_not_there() {
    let place = Place::new();
    let socket = place.socket();
    let emulate = ["serve", "lru", "--emulate", "--size", "64MiB", "--socket"];
    let of = |set: &str| failure(&run(&[&emulate[..], &[&socket, "--set", set]].concat()));
    assert_eq!(
        of("ssb.drive=850evo"),
        "imbrex: --set ssb.drive: the stack `lru` has no node `ssb`; did you mean `ssd`? (nodes: smr, \
         translation, ssd, cache)"
    );
    assert_eq!(
        of("cache.policy=opt"),
        "imbrex: node `cache`: policy `opt` must know the future, so it needs a trace"
    );
    assert!(!Path::new(&socket).exists(), "the socket was left behind");
}

#[test]
fn serve_refuses_what_is_no_image_of_its_own() {
    let place = Place::new();
    let data = place.data();
    assert_eq!(place.refused("lru"), format!("imbrex: there is no image in {data}"));
    place.create("lru", "64MiB", &[]);
    let again = failure(&run(&["create", "lru", "--data", &data]));
    assert_eq!(again, format!("imbrex: there is already an image in {data}"));
    assert_eq!(
        place.refused("pore"),
        format!("imbrex: {data}: the image was created for the stack `lru`, not `pore`")
    );
    let path = place.path("data/image");
    let good = std::fs::read(&path).expect("a description");
    let mut other = good.clone();
    other[8] = 9;
    std::fs::write(&path, &other).expect("a file");
    assert_eq!(
        place.refused("lru"),
        format!("imbrex: {path} has format version 9; accepted: versions 3 and 4")
    );
    other = good.clone();
    other[70] ^= 1;
    std::fs::write(&path, &other).expect("a file");
    assert_eq!(
        place.refused("lru"),
        format!("imbrex: {path} is damaged: the checksum of the body is wrong")
    );
    std::fs::write(&path, &good).expect("a file");
    place.serve("lru").stop();
}

#[test]
fn every_setting_of_a_stack_file_must_be_that_of_the_image() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    let shown = run(&["systems", "--show", "lru"]);
    let text = String::from_utf8(shown.stdout).expect("TOML");
    let file = place.path("mine.toml");
    std::fs::write(&file, &text).expect("a file");
    let capacity = "cache.capacity=8MiB";
    place.create(&file, "64MiB", &["cache.capacity=4MiB"]);
    let serve = |stack: &str, set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|setting| ["--set", setting]).collect();
        let arguments = ["serve", stack, "--data", &data, "--socket", &socket];
        failure(&run(&[&arguments[..], &set].concat()))
    };
    let differs =
        format!("imbrex: {data}: cache.capacity is \"8 MiB\" here, and \"4 MiB\" in the image");
    assert_eq!(serve(&file, &[capacity]), differs);
    assert_eq!(serve("lru", &[capacity]), differs);
    std::fs::write(&file, text.replace("kind = \"disk\"", "kind = \"disk\"\nwrite_cache = false"))
        .expect("a file");
    assert_eq!(
        serve(&file, &["cache.capacity=4MiB"]),
        format!("imbrex: {data}: smr.write_cache is false here, and not set in the image")
    );
    std::fs::write(&file, &text).expect("a file");
    let arguments = ["serve", &file, "--data", &data, "--socket", &socket];
    let mut command = imbrex();
    command.args(arguments).args(["--set", "cache.capacity=4MiB"]);
    Served::start(&mut command, Path::new(&socket)).stop();
    place.serve("lru").stop();
}

#[test]
fn the_command_that_create_names_serves_what_it_has_created() {
    let place = Place::new();
    let (data, socket) = (place.path("it's|data"), place.socket());
    let shown = run(&["systems", "--show", "lru"]);
    let file = place.path("mine or yours.toml");
    std::fs::write(&file, shown.stdout).expect("a file");
    let words = ["create", &file, "--data", &data, "--size", "64MiB"];
    let created = run(&[&words[..], &["--set", "cache.capacity=4 MiB"]].concat());
    let said = String::from_utf8(created.stdout).expect("text");
    let (_, next) = said.split_once("next: imbrex ").expect("a command");
    let program = env!("CARGO_BIN_EXE_imbrex");
    let line = format!("exec {program} {}", next.replace("PATH", &socket));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &line]);
    Served::start(&mut command, Path::new(&socket)).stop();
}

/// A stack file whose disks are files of its own.
fn with_backings(place: &Place, smr: &str, ssd: &str) -> String {
    let shown = run(&["systems", "--show", "lru"]);
    let mut table: toml::Table =
        String::from_utf8(shown.stdout).expect("text").parse().expect("TOML");
    for node in table["node"].as_array_mut().expect("nodes") {
        let node = node.as_table_mut().expect("a node");
        let backing = match node["name"].as_str() {
            Some("smr") => smr,
            Some("ssd") => ssd,
            _ => continue,
        };
        node.insert("backing".into(), place.path(backing).into());
    }
    let file = place.path("backed.toml");
    std::fs::write(&file, table.to_string()).expect("a file");
    file
}

#[test]
fn backing_files_are_blank_and_distinct_and_nobody_elses() {
    let place = Place::new();
    let data = place.data();
    let make = |name: &str, bytes: u64| {
        let file = std::fs::File::create(place.path(name)).expect("a file");
        file.set_len(bytes).expect("a length");
    };
    make("a", 8 << 30);
    make("b", 1 << 30);
    std::fs::hard_link(place.path("a"), place.path("c")).expect("a link");
    let create = |stack: &str| {
        let arguments = ["create", stack, "--data", &data, "--size", "64MiB"];
        let said = failure(&run(&[&arguments[..], &["--set", "cache.capacity=4MiB"]].concat()));
        let left = std::fs::read_dir(&data).map_or(0, Iterator::count);
        assert_eq!(left, 0, "files were left: {said}");
        said
    };
    assert_eq!(
        create(&with_backings(&place, "a", "c")),
        format!(
            "imbrex: node `ssd`: {} is the disk of node `smr` already; accepted: a file or block device of its own",
            place.path("c")
        )
    );
    std::fs::write(place.path("full"), [7; 9000]).expect("a file");
    assert_eq!(
        create(&with_backings(&place, "a", "full")),
        format!(
            "imbrex: node `ssd`: {0} holds data; accepted: a file, block device or export whose first 1.00 MiB are \
             zeroes; to destroy what is there, such as the rest of an interrupted create: dd if=/dev/zero \
             of={0} bs=1M count=1 conv=notrunc,fsync",
            place.path("full")
        )
    );
    let user = std::fs::File::open(place.path("b")).expect("a file");
    rustix::fs::flock(&user, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    let stack = with_backings(&place, "a", "b");
    assert_eq!(
        create(&stack),
        format!("imbrex: node `ssd`: {} is in use by another process", place.path("b"))
    );
    drop(user);
    place.create(&stack, "64MiB", &["cache.capacity=4MiB"]);
    // Whoever creates it twice must not be told how to destroy it.
    assert_eq!(
        failure(&run(&["create", &stack, "--data", &data, "--size", "64MiB"])),
        format!("imbrex: there is already an image in {data}")
    );
    let server = place.serve("lru");
    assert_eq!(server.client().write(0, 0, &[1; 4096]), 0);
    server.stop();
}

/// A backing keeps its name, so what a creation that was killed has begun stays where it is.
#[test]
fn a_backing_that_a_creation_has_begun_to_format_is_zeroed_as_the_error_says() {
    let place = Place::new();
    let data = place.data();
    for (name, bytes) in [("a", 8 << 30), ("b", 1 << 30)] {
        let file = std::fs::File::create(place.path(name)).expect("a file");
        file.set_len(bytes).expect("a length");
    }
    let stack = with_backings(&place, "a", "b");
    let create = ["create", &stack, "--data", &data, "--size", "64MiB"];
    assert!(run(&create).status.success());
    // As after a kill before the image had its description.
    std::fs::remove_file(place.path("data/image")).expect("a description");
    for _ in ["a", "b"] {
        let said = failure(&run(&create));
        let (_, command) = said.split_once("interrupted create: ").expect("a command");
        let zeroed = Command::new("sh").args(["-c", command]).output();
        assert!(zeroed.expect("a shell").status.success(), "{command}");
    }
    place.create(&stack, "64MiB", &[]);
    let server = place.serve("lru");
    assert_eq!(server.client().read(0, 4096), Ok(vec![0; 4096]));
    server.stop();
    assert_eq!(run(&["check", &data, "--data"]).status.code(), Some(0));
}

#[test]
fn an_image_whose_server_was_killed_is_recovered() {
    let place = Place::new();
    let data = place.data();
    place.create("lru", "64MiB", &["cache.capacity=4MiB"]);
    let server = place.serve("lru");
    assert!(!server.said().contains("not closed in order"), "a new image");
    let mut client = server.client();
    for block in 0..3000u64 {
        assert_eq!(client.write(0, block * 4096, &block.to_le_bytes().repeat(512)), 0);
    }
    server.kill_nine();
    let server = place.serve("lru");
    let said = server.said();
    let start = format!("imbrex: {data} was not closed in order: recovered in ");
    assert!(said.starts_with(&start), "{said}");
    let mut client = server.client();
    for block in 0..3000u64 {
        let found = client.read(block * 4096, 4096);
        assert_eq!(found, Ok(block.to_le_bytes().repeat(512)), "block {block}");
    }
    disconnect(client);
    server.stop();
    let server = place.serve("lru");
    assert!(!server.said().contains("not closed in order"), "it was closed");
    server.stop();
}

#[test]
fn an_image_has_one_server() {
    let place = Place::new();
    let data = place.data();
    place.create("lru", "64MiB", &[]);
    let server = place.serve("lru");
    let other = place.path("other");
    let second = failure(&run(&["serve", "lru", "--data", &data, "--socket", &other]));
    assert_eq!(second, format!("imbrex: the image in {data} is in use by another process"));
    assert_eq!(server.client().write(0, 0, &[1; 4096]), 0);
    server.stop();
    place.serve("lru").stop();
}

#[test]
fn a_server_that_could_not_start_leaves_its_image_clean() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    place.create("lru", "64MiB", &[]);
    let listener = UnixListener::bind(&socket).expect("a socket");
    assert_eq!(
        place.refused("lru"),
        format!("imbrex: cannot listen on {socket}: another server is listening there")
    );
    drop(listener);
    std::fs::remove_file(&socket).expect("a socket");
    std::fs::write(&socket, "mine").expect("a file");
    assert_eq!(
        place.refused("lru"),
        format!("imbrex: cannot listen on {socket}: it exists and is not a socket")
    );
    assert_eq!(std::fs::read(&socket).expect("a file"), b"mine");
    std::fs::remove_file(&socket).expect("a file");

    let tcp =
        |address: &str| failure(&run(&["serve", "lru", "--data", &data, "--listen", address]));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    assert_eq!(
        tcp(&address.to_string()),
        format!(
            "imbrex: cannot listen on {address}: the port is taken; port 0 takes any that is free"
        )
    );
    assert_eq!(
        tcp("0.0.0.0:0"),
        "imbrex: cannot listen on 0.0.0.0:0: only loopback addresses (127.0.0.1, ::1) are accepted, because \
         NBD clients are not authenticated; accepted: another one with --trust-network, where \
         everybody who reaches it may read and write"
    );
    assert_eq!(
        tcp("localhost:1"),
        "imbrex: --listen localhost:1: accepted: an address and a port, such as 127.0.0.1:10809"
    );

    // The disks are opened last; one that is not there is no reason to distrust the others.
    let (disk, away) = (place.path("data/smr.img"), place.path("away"));
    std::fs::rename(&disk, &away).expect("a file");
    assert_eq!(
        place.refused("lru"),
        format!(
            "imbrex: node `smr`: cannot open {disk} as a disk: No such file or directory (os error 2)"
        )
    );
    std::fs::rename(&away, &disk).expect("a file");
    place.serve("lru").stop();
}

#[test]
fn a_recording_does_not_take_the_place_of_another_file() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    place.create("cmr-only", "8MiB", &[]);
    let serve = |stack: &str, record: &str| {
        let arguments = ["--data", &data, "--socket", &socket, "--record", record];
        failure(&run(&[["serve", stack].as_slice(), &arguments].concat()))
    };
    let member = place.path("data/cmr.img");
    let length = || std::fs::metadata(&member).expect("a member").len();
    let before = length();
    assert_eq!(
        serve("cmr-only", &member),
        format!(
            "imbrex: --record {member}: there is such a file already; accepted: a path where none is"
        )
    );
    assert_eq!(length(), before);
    // One that never began leaves nothing behind.
    let fresh = place.path("new.imbrex");
    std::fs::remove_file(&member).expect("a member");
    assert!(serve("cmr-only", &fresh).contains("cmr.img"));
    assert!(!std::path::Path::new(&fresh).exists());
}

#[test]
fn a_recording_that_cannot_be_kept_does_not_spoil_the_image() {
    let place = Place::new();
    let (data, socket) = (place.data(), place.socket());
    place.create("lru", "64MiB", &[]);
    let full = "/dev/full";
    let arguments = ["--data", &data, "--socket", &socket, "--record", full];
    let server = Served::start(imbrex().args(["serve", "lru"]).args(arguments), Path::new(&socket));
    let mut client = server.client();
    assert_eq!(client.write(0, 0, &[7; 4096]), 0);
    disconnect(client);
    server.signal("TERM");
    let (status, _) = server.wait();
    assert_eq!(status, Some(1), "the loss of the recording is an error");
    let server = place.serve("lru");
    assert_eq!(server.client().read(0, 4096), Ok(vec![7; 4096]));
    server.stop();
}

/// A small file system of its own, unmounted at the end.
struct SmallFileSystem<'a>(&'a str);

impl<'a> SmallFileSystem<'a> {
    fn mount(path: &'a str, bytes: u64) -> Option<SmallFileSystem<'a>> {
        std::fs::create_dir(path).expect("a directory");
        let options = format!("size={bytes}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs", path]).output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallFileSystem(path)),
            _ => {
                eprintln!("skipped: a small file system can be mounted by root only");
                None
            }
        }
    }
}

impl SmallFileSystem<'_> {
    fn grow(&self, bytes: u64) {
        let options = format!("remount,size={bytes}");
        let mounted = Command::new("mount").args(["-o", &options, self.0]).status();
        assert!(mounted.expect("mount").success());
    }
}

impl Drop for SmallFileSystem<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", self.0]).status();
    }
}

fn a_full_file_system_below(stack: &str, set: &[&str]) {
    let place = Place::new();
    let data = place.data();
    let Some(mounted) = SmallFileSystem::mount(&data, 24 << 20) else {
        return;
    };
    place.create(stack, "128MiB", set);
    let server = place.serve(stack);
    let mut client = server.client();
    let block = |index: u64| vec![index as u8 | 1; 1 << 20];
    let mut written = Vec::new();
    let mut refused = 0;
    for index in 0..40 {
        match client.write(0, index << 20, &block(index)) {
            0 => written.push(index),
            error => {
                assert_eq!(error, ENOSPC, "{stack}");
                refused += 1;
            }
        }
    }
    assert!(written.len() >= 12, "{stack}: only {written:?} fit");
    assert!(refused >= 12, "{stack}: only {refused} writes were refused");
    for index in &written {
        let read = client.read(index << 20, 1 << 20).expect("what was answered");
        assert!(read == block(*index), "{stack}: MiB {index}");
    }
    // Room is made, and all is well again; a journal that was cut short wants a new start first.
    mounted.grow(256 << 20);
    let (server, mut client) = if stack == "cmr-only" {
        (server, client)
    } else {
        server.kill_nine();
        let server = place.serve(stack);
        let client = server.client();
        (server, client)
    };
    assert_eq!(client.write(0, 100 << 20, &block(100)), 0, "{stack}");
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0, "{stack}");
    disconnect(client);
    server.stop();
    let server = place.serve(stack);
    let mut client = server.client();
    for index in written.into_iter().chain([100]) {
        let read = client.read(index << 20, 1 << 20).expect("what was kept");
        assert!(read == block(index), "{stack}: MiB {index} after a restart");
    }
    disconnect(client);
    server.stop();
}

#[test]
fn a_client_hears_of_a_full_file_system_and_the_server_goes_on() {
    a_full_file_system_below("cmr-only", &[]);
    a_full_file_system_below("lru", &["cache.capacity=48MiB"]);
}

#[test]
fn room_is_taken_when_an_image_is_made_or_there_is_no_image() {
    let place = Place::new();
    let data = place.data();
    let small = SmallFileSystem::mount(&data, 24 << 20);
    let arguments = ["create", "cmr-only", "--data", &data, "--size", "64MiB", "--preallocate"];
    if let Some(small) = &small {
        let said = failure(&run(&arguments));
        assert!(said.starts_with("imbrex: cannot take the room of "), "{said}");
        assert!(said.contains(": No space left on device (os error 28); the files of "), "{said}");
        let room = " take 64.0 MiB together, and its file system has ";
        assert!(said.contains(room) && said.contains("; accepted: a smaller device"), "{said}");
        assert_eq!(std::fs::read_dir(&data).expect("the folder").count(), 0, "nothing is left");
        small.grow(256 << 20);
    }
    let made = run(&arguments);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = String::from_utf8_lossy(&made.stdout);
    assert!(said.contains(": cmr-only of 64.0 MiB, 64.0 MiB set aside; next: "), "{said}");
    let mut images = 0;
    for entry in std::fs::read_dir(&data).expect("the folder") {
        let entry = entry.expect("an entry");
        if entry.path().extension().is_some_and(|suffix| suffix == "img") {
            let file = entry.metadata().expect("metadata");
            assert!(file.blocks() * 512 >= file.len(), "{entry:?} has holes");
            images += 1;
        }
    }
    assert_eq!(images, 1);
    let server = place.serve("cmr-only");
    let mut client = server.client();
    assert_eq!(client.read(0, 1 << 20), Ok(vec![0; 1 << 20]));
    assert_eq!(client.write(0, 1 << 20, &vec![9; 1 << 20]), 0);
    disconnect(client);
    server.stop();
}
