//! A cache over a real drive that cleans by itself: what is refused, and that it is served.

use crate::client::FLUSH;
use crate::served::{Place, disconnect, failure, run};

const DEVICE_BYTES: u64 = 64 << 20;

/// Writes a stack file; its path.
fn stack(place: &Place, drive: &str, policy: &str) -> String {
    let path = place.path("mine.toml");
    let text = format!(
        "name = \"mine\"\nsize = \"{DEVICE_BYTES} B\"\n\
         [[node]]\nname = \"disk\"\nkind = \"disk\"\ndrive = \"{drive}\"\n\
         translation = \"drive-managed\"\n\
         [[node]]\nname = \"ssd\"\nkind = \"disk\"\ndrive = \"850evo\"\n\
         [[node]]\nname = \"cache\"\nkind = \"write-back-cache\"\n\
         below = {{ flash = \"ssd\", backing = \"disk\" }}\ncapacity = \"1 MiB\"\n{policy}\n"
    );
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn caches_that_need_the_log_alone_are_served_over_a_drive_that_cleans_by_itself() {
    for policy in ["policy = \"ride\"", "policy = \"pore\"", "policy = \"lru\""] {
        let place = Place::new();
        let stack = stack(&place, "st8000as0002", policy);
        place.create(&stack, "64MiB", &[]);
        let mut expected = vec![0; DEVICE_BYTES as usize];
        for fill in 1..=2 {
            let server = place.serve(&stack);
            let mut client = server.client();
            let blocks = expected.chunks_mut(4096).enumerate().step_by(7);
            for (number, block) in blocks {
                block.fill(fill);
                block[..8].copy_from_slice(&(number as u64).to_le_bytes());
                assert_eq!(client.write(0, number as u64 * 4096, block), 0);
            }
            assert_eq!(client.call(FLUSH, 0, 0, 0), 0);
            disconnect(client);
            let run = server.stop();
            let destaged = run["nodes"]["cache"]["dirty_evictions"].as_u64();
            assert!(destaged > Some(1000), "{policy}: {run}");
        }
        let server = place.serve(&stack);
        let mut client = server.client();
        for (number, part) in expected.chunks(4 << 20).enumerate() {
            let offset = (number as u64) * (4 << 20);
            let read = client.read(offset, part.len() as u32).expect("a read");
            assert!(read == part, "{policy}: part {number}");
        }
        disconnect(client);
        server.stop();
        let said = run(&["check", &place.data()]);
        assert!(said.status.success(), "{policy}: {said:?}");
    }
}

#[test]
fn what_such_a_drive_cannot_be_is_refused() {
    let place = Place::new();
    let (data, ride) = (place.data(), "policy = \"ride\"");
    let create = |stack: &str| failure(&run(&["create", stack, "--data", &data]));
    assert_eq!(
        create(&stack(&place, "wd-4tb-7200", ride)),
        "imbrex: node `disk`: translation = \"drive-managed\", and the file of the drive `WD 4 TB 7200 rpm` \
         has no [translation]; accepted: a drive that cleans by itself"
    );
    assert_eq!(
        create(&stack(&place, "st8000as0002", "policy = \"lru-band\"")),
        "imbrex: node `cache`: the policy lru-band needs bands, and the device below has none: put it \
         above a translation, or give it bands"
    );
    let stack = stack(&place, "st8000as0002", ride);
    let simulated = "imbrex: node `disk`: translation = \"drive-managed\" is a real drive that `imbrex \
                     create` and `imbrex serve` put a stack on; accepted in a simulation: a node of \
                     kind \"persistent-cache\" over the drive `Seagate ST8000AS0002`, as in \
                     `ride-archive`";
    let trace = "synthetic:one-block/1000";
    let compare = run(&["compare", "--trace", trace, "--systems", &stack]);
    assert_eq!(failure(&compare), simulated);
    let socket = place.socket();
    let emulated = run(&["serve", &stack, "--emulate", "--socket", &socket]);
    assert_eq!(failure(&emulated), simulated);
    let set = "smr.translation=drive-managed";
    let both = run(&["compare", "--trace", trace, "--systems", "lru-archive", "--set", set]);
    assert_eq!(
        failure(&both),
        "imbrex: node `smr`: translation = \"drive-managed\", so that the drive `Seagate ST8000AS0002` \
         hides its tracks; accepted: below any node that writes anywhere, and without the key below a \
         node of kind \"persistent-cache\""
    );
}
