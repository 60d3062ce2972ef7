//! Memory as a disk: what is kept when the server has gone.

use crate::client::{Client, FLUSH, FUA};
use crate::support::{TestServer, plain};
use imbrex_core::disk::Survival;
use imbrex_serve::disk::Memory;
use imbrex_serve::image::new_uuid;
use std::fs::{self, File};

const BLOCKS: u64 = 4;

fn served(memory: &Memory) -> TestServer {
    let memory = memory.clone();
    TestServer::over(move |waker| {
        let disk = memory.open(plain(BLOCKS), false, waker).expect("memory");
        assert!(!disk.is_direct());
        Box::new(disk)
    })
}

#[test]
fn anonymous_memory_starts_as_zeroes_and_other_memory_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ram.img");
    let file = File::create(&path).expect("a file");
    file.set_len(BLOCKS * 4096).expect("a length");
    let image = new_uuid().expect("random numbers");
    let of = |survives| Memory::of_node(survives, image, "ram", path.clone());
    let shared = of(Survival::Process);
    let Memory::Shared(name) = &shared else {
        panic!("{shared:?}");
    };
    let written = [7; 4096];
    for (memory, kept) in
        [(of(Survival::Nothing), 0), (shared.clone(), 7), (of(Survival::Power), 7)]
    {
        let server = served(&memory);
        let mut client = Client::ready(&server.socket);
        let read = client.read(4096, 4096).expect("a read");
        assert!(read == [0; 4096], "{memory:?}");
        assert_eq!(client.write(FUA, 4096, &written), 0);
        assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
        let read = client.read(4096, 4096).expect("a read");
        assert!(read == written, "{memory:?}");
        drop(client);
        drop(server);
        let server = served(&memory);
        let mut client = Client::ready(&server.socket);
        let read = client.read(4096, 4096).expect("a read");
        assert!(read == [kept; 4096], "{memory:?}");
    }
    assert!(name.starts_with("/dev/shm"), "{}", name.display());
    fs::remove_file(name).expect("the file of the test");
}
