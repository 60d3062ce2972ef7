//! A cache whose flash is memory: what is refused, and what is kept.

use crate::client::FLUSH;
use crate::served::{Place, Served, disconnect, failure, imbrex, run};
use imbrex_serve::image::{ImageDescription, ImageMember, ImageMembers, NewImage, new_uuid};
use std::path::Path;

const DEVICE_BYTES: u64 = 8 << 20;

/// Writes the stack file; its path.
fn stack(place: &Place, survives: &str) -> String {
    let path = place.path("mine.toml");
    let text = format!(
        "name = \"mine\"\nsize = \"8 MiB\"\n\
         [[node]]\nname = \"ram\"\nkind = \"disk\"\nmedia = \"memory\"\nsize = \"64 MiB\"\n\
         survives = \"{survives}\"\n\
         [[node]]\nname = \"cmr\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n\
         [[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"ram\", backing = \"cmr\" }}\ncapacity = \"1 MiB\"\npolicy = \"lru\"\n"
    );
    std::fs::write(&path, text).expect("a file");
    path
}

/// Writes blocks all over the device, each with `fill` and its number, and flushes.
fn write(server: &Served, fill: u8, expected: &mut [u8]) {
    let mut client = server.client();
    for (number, block) in expected.chunks_mut(4096).enumerate().step_by(3) {
        block.fill(fill);
        block[..8].copy_from_slice(&(number as u64).to_le_bytes());
        assert_eq!(client.write(0, number as u64 * 4096, block), 0);
    }
    assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
    disconnect(client);
}

fn verify(server: &Served, expected: &[u8]) {
    let mut client = server.client();
    let read = client.read(0, expected.len() as u32).expect("a read");
    let differs = read.iter().zip(expected).position(|(a, b)| a != b);
    assert_eq!(differs, None, "the first byte that is another one");
    disconnect(client);
}

#[test]
fn a_device_that_a_power_cut_would_take_is_served_only_emulated() {
    for survives in ["nothing", "process"] {
        let place = Place::new();
        let stack = stack(&place, survives);
        let (data, socket) = (place.data(), place.socket());
        let expected = format!(
            "imbrex: node `ram`: survives = \"{survives}\", and no layer above keeps elsewhere what \
             was flushed; accepted in a stack that is served from files: \"power\""
        );
        let said = failure(&run(&["create", &stack, "--data", &data]));
        assert_eq!(said, expected);
        assert!(!Path::new(&data).exists(), "an image was made");
        // An image that some other program has made.
        let member = |number, port: &str| ImageMember {
            number,
            node: "cache".to_owned(),
            port: port.to_owned(),
        };
        let description = ImageDescription {
            uuid: new_uuid().expect("random numbers"),
            stack_toml: std::fs::read_to_string(&stack).expect("a stack"),
            size_bytes: DEVICE_BYTES,
            nodes: vec![],
            members: ImageMembers { next: 3, list: vec![member(1, "flash"), member(2, "backing")] },
            disks: None,
        };
        let image = NewImage::begin(Path::new(&data), description, &[]).expect("an image");
        image.finish().expect("an image");
        assert_eq!(place.refused(&stack), expected);
        let arguments = ["serve", &stack, "--emulate", "--socket", &socket];
        let server = Served::start(imbrex().args(arguments), Path::new(&socket));
        let mut expected = vec![0; DEVICE_BYTES as usize];
        write(&server, 1, &mut expected);
        verify(&server, &expected);
        server.stop();
    }
}

#[test]
fn memory_with_a_battery_keeps_what_was_flushed_over_a_kill_and_an_end_in_order() {
    let place = Place::new();
    let stack = stack(&place, "power");
    place.create(&stack, "8MiB", &[]);
    let mut expected = vec![0; DEVICE_BYTES as usize];
    let server = place.serve(&stack);
    write(&server, 1, &mut expected);
    server.kill_nine();
    let server = place.serve(&stack);
    assert!(server.said().contains("was not closed in order"), "{}", server.said());
    verify(&server, &expected);
    write(&server, 2, &mut expected);
    server.stop();
    let server = place.serve(&stack);
    assert!(!server.said().contains("was not closed in order"), "{}", server.said());
    verify(&server, &expected);
    server.stop();
    let said = run(&["check", &place.data()]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}
