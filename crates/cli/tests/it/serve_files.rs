//! Links, FIFOs and devices where an image has its files.

use crate::client::FLUSH;
use crate::served::{Place, failure, run};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// Far less than anybody would wait for the other end of a FIFO.
const AT_ONCE: Duration = Duration::from_secs(20);

fn image() -> Place {
    let place = Place::new();
    place.create("cmr-only", "16MiB", &[]);
    place
}

fn file(place: &Place, name: &str) -> String {
    format!("{}/{name}", place.data())
}

fn make_fifo(path: &str) {
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, path, FileType::Fifo, mode, 0).expect("a FIFO");
}

/// What each command that opens the image says of something that is no file there.
fn refusals(place: &Place) -> Vec<String> {
    let started = Instant::now();
    let data = place.data();
    let mut said = vec![place.refused("cmr-only")];
    for command in ["check", "inspect"] {
        said.push(told(&["--json"], command, &data));
    }
    assert!(started.elapsed() < AT_ONCE, "{said:?}");
    said
}

/// All that a command says, which must not be that all is well.
fn told(more: &[&str], command: &str, data: &str) -> String {
    let output = run(&[&[command, data], more].concat());
    let all = [output.stdout, output.stderr].concat();
    String::from_utf8(all).expect("text")
}

#[test]
fn what_a_link_in_the_folder_leads_to_is_never_written() {
    let place = image();
    let victim = place.path("victim");
    fs::write(&victim, "mine").expect("a file");
    symlink(&victim, file(&place, "in-use")).expect("a link");
    place.serve("cmr-only").stop();
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "mine");
    assert!(!fs::exists(file(&place, "in-use")).expect("a folder"));
    // A disk may be a link: somebody has moved it to where there is room.
    let (disk, elsewhere) = (file(&place, "cmr.img"), place.path("elsewhere"));
    fs::rename(&disk, &elsewhere).expect("a file");
    symlink(&elsewhere, &disk).expect("a link");
    let server = place.serve("cmr-only");
    let mut client = server.client();
    assert_eq!(client.write(0, 4096, &[7; 4096]), 0);
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    server.stop();
    let server = place.serve("cmr-only");
    assert_eq!(server.client().read(4096, 4096), Ok(vec![7; 4096]));
    server.stop();
    assert!(fs::symlink_metadata(&disk).expect("a link").is_symlink());
    assert!(told(&[], "check", &place.data()).ends_with("clean\n"));
}

#[test]
fn a_fifo_in_the_place_of_a_disk_is_an_error_at_once() {
    for make in [
        make_fifo,
        |path: &str| symlink("/dev/zero", path).expect("a link"),
        |path: &str| fs::create_dir(path).expect("a folder"),
    ] {
        let place = image();
        let disk = file(&place, "cmr.img");
        fs::remove_file(&disk).expect("a file");
        make(&disk);
        for said in refusals(&place) {
            assert!(said.contains("cmr"), "{said}");
            let accepted = "; accepted: a regular file or a block device";
            assert!(said.contains(accepted), "{said}");
        }
    }
}

#[test]
fn a_fifo_in_the_place_of_the_description_is_an_error_at_once() {
    let place = image();
    let description = file(&place, "image");
    fs::remove_file(&description).expect("a file");
    make_fifo(&description);
    let expected = format!("cannot read {description}: it is a FIFO; accepted: a regular file");
    for said in refusals(&place) {
        assert!(said.contains(&expected), "{said}");
    }
    for name in ["image.new", "in-use"] {
        let place = image();
        let path = file(&place, name);
        make_fifo(&path);
        let started = Instant::now();
        let said = place.refused("cmr-only");
        assert!(started.elapsed() < AT_ONCE);
        let expected = format!("cannot write {path}: it is a FIFO; accepted: a regular file");
        assert_eq!(said, format!("imbrex: {expected}"));
        assert!(fs::symlink_metadata(&path).is_ok(), "it is somebody else's, and stays");
    }
}

#[test]
fn a_fifo_as_a_backing_is_an_error_at_once() {
    let place = Place::new();
    let backing = place.path("backing");
    make_fifo(&backing);
    let stack = place.path("own.toml");
    let text = format!(
        "name = 'own'\n[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'wd-4tb-7200'\nbacking = '{backing}'\n"
    );
    fs::write(&stack, text).expect("a file");
    let started = Instant::now();
    let data = place.data();
    let said = failure(&run(&["create", &stack, "--data", &data, "--size", "16MiB"]));
    assert!(started.elapsed() < AT_ONCE);
    let words = "it is a FIFO; accepted: a regular file or a block device";
    assert_eq!(said, format!("imbrex: node `disk`: {backing}: {words}"));
}
