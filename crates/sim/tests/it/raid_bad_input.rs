//! Stacks with arrays that cannot be: each is refused with the node, the key, the value and what would do.

use imbrex_core::buffer::ContentKind;
use imbrex_stack::{BuildOptions, NodeConfig, Plan, Setting, StackConfig};

const COUNTED: ContentKind = ContentKind::Counted;

/// A disk of a drive file of the tests.
fn disk(name: &str, drive: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{folder}/{drive}.toml\"\n")
}

/// Conventional disks `d0` and so on of 400 blocks.
fn disks(count: usize) -> String {
    (0..count).map(|number| disk(&format!("d{number}"), "tiny-cmr")).collect()
}

/// Their names as a list.
fn names(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| format!("\"d{number}\"")).collect::<Vec<_>>().join(", ")
}

/// A node over one other.
fn over(name: &str, below: &str, keys: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nbelow = \"{below}\"\n{keys}\n")
}

/// A part of 100 blocks of a disk.
fn slice(name: &str, below: &str, offset: &str) -> String {
    over(name, below, &format!("kind = \"slice\"\noffset = \"{offset}\"\nsize = \"400 KiB\""))
}

fn zones(name: &str, below: &str) -> String {
    over(name, below, "kind = \"host-managed\"\nzone_size = \"64 KiB\"")
}

fn array(kind: &str, keys: &str) -> String {
    format!("[[node]]\nname = \"array\"\nkind = \"{kind}\"\n{keys}\n")
}

/// Builds a stack of these nodes.
fn built(nodes: &str, contents: ContentKind) -> Result<(), String> {
    let text = format!("name = \"s\"\n{nodes}");
    let config = StackConfig::from_text("s.toml", &text, &[]);
    let plan = config.and_then(|config| Plan::new(&config, &BuildOptions::simulate(1)));
    let built = plan.and_then(|plan| plan.build(None, None, contents).map(|_| ()));
    built.map_err(|error| error.to_string())
}

/// What a stack of these nodes is refused with, without the line of the file.
fn refused(nodes: &str) -> String {
    let error = built(nodes, COUNTED).expect_err(nodes);
    match error.strip_prefix("s.toml:").and_then(|rest| rest.split_once(": ")) {
        Some((line, words)) if line.parse::<u32>().is_ok() => words.to_string(),
        _ => error,
    }
}

/// Every piece of what should be said is.
fn says(error: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(error.contains(piece), "no {piece:?} in: {error}");
    }
}

#[test]
fn levels_take_so_many_members_and_no_others() {
    for (kind, counts, accepted) in
        [("raid1", 2..5, "2 to 4"), ("raid4", 3..65, "3 to 64"), ("raid5", 3..65, "3 to 64")]
    {
        for count in [counts.start, counts.end - 1] {
            let below = format!("below = [{}]", names(0..count));
            let result = built(&(disks(count) + &array(kind, &below)), COUNTED);
            assert_eq!(result, Ok(()), "{kind}: {count}");
        }
        for count in [counts.start - 1, counts.end].into_iter().filter(|count| *count < 65) {
            let below = format!("below = [{}]", names(0..count));
            let error = refused(&(disks(count) + &array(kind, &below)));
            let found = format!("node `array`: below: {count} given");
            says(&error, &[&found, &format!("accepted: {accepted} nodes of kind = \"{kind}\"")]);
        }
        let error = refused(&(disks(1) + &array(kind, "below = []")));
        says(&error, &["array.below = []; accepted: the names of"]);
        let below = format!("below = [{}]", names(0..65));
        let error = refused(&(disks(65) + &array(kind, &below)));
        says(&error, &["array.below = [\"d0\", ", "; accepted: "]);
    }
}

#[test]
fn levels_refuse_keys_and_values_that_are_not_theirs() {
    for (keys, expected) in [
        (
            "below = [\"d0\", \"d1\", \"d2\"]\nspare = [\"d3\"]",
            "array: unknown field `spare`, expected one of `name`, `below`, `spares`; did you mean `spares`?",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nchunk = \"64 KiB\"",
            "array: unknown field `chunk`, expected one of `name`, `below`, `spares`",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\ndurable = true",
            "array: unknown field `durable`, expected one of `name`, `below`, `spares`",
        ),
        ("", "array: missing field `below`"),
        ("below = \"d0\"", "array.below = \"d0\"; accepted: a list of names, [\"d0\"]"),
        (
            "below = { homes = [\"d0\", \"d1\"], data = \"d2\", parity = \"d3\" }",
            "array.below = { data = \"d2\", homes = [\"d0\", \"d1\"], parity = \"d3\" }; accepted: a list of \
             names",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\"]\nspares = \"d3\"",
            "array.spares = \"d3\"; accepted: a list of names",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\"]\nspares = [3]",
            "array.spares = [3]; accepted: a list of names",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d9\"]",
            "s.toml: node `array` stands on `d9`, which is not defined before it (defined: d0, d1, d2, d3)",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\", \"d2\"]",
            "s.toml: node `d2` is below two ports of node `array`",
        ),
        (
            "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"d3\"]",
            "s.toml: node `d3` is below two ports of node `array`",
        ),
    ] {
        for kind in ["raid4", "raid5"] {
            assert_eq!(refused(&(disks(4) + &array(kind, keys))), expected);
        }
    }
    let spare = "below = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d3\"]";
    assert_eq!(built(&(disks(4) + &array("raid5", spare)), COUNTED), Ok(()));
}

#[test]
fn members_on_one_disk_are_refused_however_deep_it_lies() {
    let two = |of: &str| slice("s0", "d0", "0 B") + &slice("s1", of, "800 KiB");
    let words = |first: &str, second: &str, disk: &str| {
        format!(
            "node `array`: its members `{first}` and `{second}` stand on one disk, `{disk}`, and would be \
             lost together; accepted: members on disks of their own"
        )
    };
    let below = "below = [\"s0\", \"s1\", \"d2\"]";
    let spare = "below = [\"s0\", \"d1\", \"d2\"]\nspares = [\"s1\"]";
    for kind in ["raid1", "raid4", "raid5"] {
        let one = disks(3).replace(&disk("d1", "tiny-cmr"), "") + &two("d0");
        assert_eq!(refused(&(one + &array(kind, below))), words("s0", "s1", "d0"), "{kind}");
        assert_eq!(
            built(&(disks(3) + &two("d1") + &array(kind, below)), COUNTED),
            Ok(()),
            "{kind}"
        );
        let error = refused(&(disks(3) + &two("d0") + &array(kind, spare)));
        assert_eq!(error, words("s0", "s1", "d0"), "{kind}");
        let deep = over("span", "s1", "kind = \"slice\"\noffset = \"0 B\"\nsize = \"200 KiB\"");
        let one = disks(3).replace(&disk("d1", "tiny-cmr"), "") + &two("d0") + &deep;
        let error = refused(&(one + &array(kind, &below.replace("s1", "span"))));
        assert_eq!(error, words("s0", "span", "d0"), "{kind}");
    }
    let homes = disk("h0", "small-smr") + &disk("h1", "small-smr");
    let bands = "track_blocks = 5\nband_tracks = 4";
    let below = "below = { homes = [\"h0\", \"h1\"], data = \"s0\", parity = \"s1\" }\n";
    let error = refused(
        &(homes + &disks(1) + &two("d0") + &array("raid4smr", &(below.to_owned() + bands))),
    );
    assert_eq!(error, words("s0", "s1", "d0"));
}

#[test]
fn members_take_writes_anywhere_and_spares_are_long_enough() {
    let smr = disk("smr", "small-smr");
    let zoned = disks(2) + &smr + &zones("z", "smr");
    for below in ["below = [\"d0\", \"d1\", \"z\"]", "below = [\"d0\", \"d1\"]\nspares = [\"z\"]"] {
        let error = refused(&(zoned.clone() + &array("raid1", below)));
        says(&error, &["node `z`: its zones must be written in sequence", "; accepted above it: "]);
    }
    let error = refused(&(disks(2) + &smr + &array("raid5", "below = [\"d0\", \"d1\", \"smr\"]")));
    says(&error, &["node `smr`: the tracks of the drive", "overlap", "; accepted: "]);
    let short = disks(3) + &slice("s", "d2", "0 B");
    let mirror = array("raid1", "below = [\"d0\", \"d1\"]\nspares = [\"s\"]");
    let error = refused(&(short.clone() + &mirror));
    says(&error, &["node `array`: spare ", "has 409600 B; accepted: 1638400 B or more"]);
    for (size, fits) in [("400 KiB", true), ("404 KiB", false)] {
        let result = built(&format!("size = \"{size}\"\n{short}{mirror}"), COUNTED);
        assert_eq!(result.is_ok(), fits, "{size}: {result:?}");
    }
    let error = refused(&format!(
        "size = \"2 MiB\"\n{}",
        disks(2) + &array("raid1", "below = [\"d0\", \"d1\"]")
    ));
    assert_eq!(error, "size: 2097152 B is more than the drive below holds (1638400 B)");
}

/// A RAID 4SMR of two homes, with bands of 20 blocks if the keys say nothing else.
fn smr(keys: &str) -> String {
    let below = "below = { homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"d1\" }\n";
    smr_of(&format!("{below}track_blocks = 5\nband_tracks = 4\nbands = \"disk\"\n{keys}"))
}

/// One of any keys, over those of the disks that they name.
fn smr_of(keys: &str) -> String {
    let is_named = |name: &&str| keys.contains(&format!("\"{name}\""));
    let homes = ["h0", "h1", "h2"].iter().filter(|name| is_named(name));
    let homes: String = homes.map(|name| disk(name, "small-smr")).collect();
    let others = ["d0", "d1", "d2"].iter().filter(|name| is_named(name));
    let others: String = others.map(|name| disk(name, "tiny-cmr")).collect();
    homes + &others + &array("raid4smr", keys)
}

#[test]
fn raid4smr_takes_what_its_keys_say() {
    for keys in [
        "",
        "collect_at = 1",
        "collect_at = 39",
        "collect_at = \"never\"",
        "placement = \"static\"",
        "placement = \"static\"\nfirst_write = \"free\"",
        "slots = \"fifo\"",
        "data_capacity = \"4 KiB\"",
        "data_capacity = \"1600 KiB\"",
        "spares = []",
    ] {
        assert_eq!(built(&smr(keys), COUNTED), Ok(()), "{keys}");
    }
    let arithmetic = smr("").replace("bands = \"disk\"", "bands = \"arithmetic\"");
    assert_eq!(built(&arithmetic, COUNTED), Ok(()));
}

#[test]
fn raid4smr_refuses_values_that_cannot_be() {
    for (keys, expected) in [
        ("collect_at = 0", &["node `array`: collect_at = 0; accepted: 1 to 39", "\"never\""][..]),
        ("collect_at = 40", &["node `array`: collect_at = 40; accepted: 1 to 39", "\"never\""]),
        ("collect_at = \"nevre\"", &["array.collect_at = \"nevre\"; accepted: ", "\"never\""]),
        (
            "collect_at = \"7\"",
            &["array.collect_at = \"7\"; accepted: 1 to the blocks of a band row less one"],
        ),
        (
            "collect_at = -1",
            &["array.collect_at = -1", "; accepted: 1 to the blocks of a band row less one"],
        ),
        (
            "collect_at = 1.5",
            &["array.collect_at = 1.5", "; accepted: 1 to the blocks of a band row less one"],
        ),
        (
            "placement = \"statik\"",
            &["array.placement = \"statik\"", "`append` or `static`; did you mean `static`?"],
        ),
        ("placement = 1", &["array.placement = 1; accepted: ", "\"append\"", "\"static\""]),
        (
            "first_write = \"fre\"",
            &["array.first_write = \"fre\"", "`rule` or `free`; did you mean `free`?"],
        ),
        (
            "first_write = \"free\"",
            &[
                "node `array`: first_write = \"free\" with placement = \"append\"",
                "; accepted: with placement = \"static\"",
            ],
        ),
        (
            "slots = \"lifo\"",
            &["array.slots = \"lifo\"", "`lowest` or `fifo`; did you mean `fifo`?"],
        ),
        ("slots = 3", &["array.slots = 3; accepted: ", "\"lowest\"", "\"fifo\""]),
    ] {
        says(&refused(&smr(keys)), expected);
    }
}

#[test]
fn raid4smr_refuses_sizes_spares_and_keys_that_cannot_be() {
    for (keys, expected) in [
        ("data_capacity = \"0 B\"", &["node `array`: data_capacity = \"0 B\"; accepted: "][..]),
        (
            "data_capacity = \"5000 B\"",
            &["node `array`: data_capacity = \"5000 B\"; accepted: a multiple of 4 KiB"],
        ),
        (
            "data_capacity = \"1604 KiB\"",
            &["node `array`: data_capacity", "; accepted: 4096 B to 1638400 B", "parity disk"],
        ),
        (
            "data_capacity = 5",
            &["array.data_capacity = 5: `5` has no unit", "; accepted: 4 KiB to the size of"],
        ),
        (
            "colect_at = 5",
            &["array: unknown field `colect_at`, expected one of ", "; did you mean `collect_at`?"],
        ),
        (
            "chunk = \"4 KiB\"",
            &["array: unknown field `chunk`, expected one of `name`, `below`, `spares`, `bands`"],
        ),
        (
            "spare = [\"d2\"]",
            &["array: unknown field `spare`, expected one of ", "; did you mean `spares`?"],
        ),
        ("spares = \"d2\"", &["array.spares = \"d2\"; accepted: a list of names"]),
        (
            "spares = [\"d2\"]",
            &[
                "node `array`: spare ",
                "has 1638400 B; accepted: ",
                "B or more, which is what is used of a member",
            ],
        ),
        ("spares = [\"h2\"]", &["node `h2`: the tracks of the drive", "overlap", "; accepted: "]),
    ] {
        says(&refused(&smr(keys)), expected);
    }
}

#[test]
fn homes_and_the_parity_disk_have_room_for_two_bands() {
    let shared = "below = { homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"d1\" }\n";
    for (keys, expected) in [
        ("track_blocks = 0", "array.track_blocks = 0; accepted: 1 to 1000000"),
        ("track_blocks = \"8\"", "array.track_blocks = \"8\"; accepted: 1 to 1000000"),
        ("band_tracks = 1000001", "array.band_tracks = 1000001; accepted: 1 to 1000000"),
        ("bands = \"disc\"", "`arithmetic` or `disk`; did you mean `disk`?"),
        ("", "has 8388608 B; accepted: 327680000 B or more, two bands"),
        (
            "track_blocks = 201\nband_tracks = 1",
            "node `array`: the parity disk has 1638400 B; accepted: 1646592 B or more, two bands",
        ),
    ] {
        says(&refused(&smr_of(&format!("{shared}{keys}"))), &[expected]);
    }
    let fits = format!("{shared}track_blocks = 200\nband_tracks = 1");
    assert_eq!(built(&smr_of(&fits), COUNTED), Ok(()));
}

#[test]
fn raid4smr_needs_two_homes_a_data_disk_and_a_parity_disk() {
    let form = "; accepted: `{ homes = [..], data = .., parity = .. }`";
    for (below, expected) in [
        (
            "{ homes = [\"h0\"], data = \"d0\", parity = \"d1\" }",
            &["node `array`: ", "homes: 1 given", "; accepted: 2 to 62"][..],
        ),
        (
            "{ homes = [], data = \"d0\", parity = \"d1\" }",
            &["array.below", "homes = []; accepted: the names of"],
        ),
        (
            "{ homes = \"h0\", data = \"d0\", parity = \"d1\" }",
            &["homes = \"h0\"; accepted: a list of names, [\"h0\"]"],
        ),
        ("{ homes = [\"h0\", \"h1\"], data = \"d0\" }", &["missing field `parity`", form]),
        ("{ homes = [\"h0\", \"h1\"], parity = \"d0\" }", &["missing field `data`", form]),
        ("{ data = \"d0\", parity = \"d1\" }", &["missing field `homes`", form]),
        (
            "{ homes = [\"h0\", \"h1\"], data = \"d0\", partiy = \"d1\" }",
            &["unknown field `partiy`", "did you mean `parity`?"],
        ),
        (
            "{ homes = [\"h0\", \"h1\"], data = [\"d0\"], parity = \"d1\" }",
            &["data is a list; accepted: the name of one node"],
        ),
        (
            "{ homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"d0\" }",
            &["node `d0` is below two ports of node `array`"],
        ),
        (
            "{ homes = [\"h0\", \"h0\"], data = \"d0\", parity = \"d1\" }",
            &["node `h0` is below two ports of node `array`"],
        ),
        (
            "{ homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"x\" }",
            &["node `array` stands on `x`, which is not defined"],
        ),
        (
            "{ homes = [\"h0\", \"h1\"], data = \"h2\", parity = \"d0\" }",
            &["node `h2`: the tracks of the drive", "; accepted: "],
        ),
        (
            "{ homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"h2\" }",
            &["node `h2`: the tracks of the drive", "; accepted: "],
        ),
        (
            "[\"h0\", \"h1\", \"d0\", \"d1\"]",
            &["array.below = [\"h0\", \"h1\", \"d0\", \"d1\"]", form],
        ),
        ("\"h0\"", &["array.below = \"h0\"", form]),
    ] {
        let keys = format!("below = {below}\ntrack_blocks = 5\nband_tracks = 4\n");
        says(&refused(&smr_of(&keys)), expected);
    }
    says(&refused(&(disks(1) + &array("raid4smr", ""))), &["array: missing field `below`"]);
}

#[test]
fn zones_of_homes_are_written_by_append_and_alike() {
    let nodes = disk("h0", "small-smr") + &disk("h1", "small-smr") + &disks(2);
    let both = nodes.clone() + &zones("z0", "h0") + &zones("z1", "h1");
    let below = "below = { homes = [\"z0\", \"z1\"], data = \"d0\", parity = \"d1\" }\n";
    let of = |keys: &str| both.clone() + &array("raid4smr", &format!("{below}{keys}"));
    assert_eq!(built(&of("collect_at = 31"), COUNTED), Ok(()));
    says(&refused(&of("collect_at = 32")), &["node `array`: collect_at = 32; accepted: 1 to 31"]);
    assert_eq!(
        refused(&of("placement = \"static\"")),
        "node `array`: placement = \"static\" over homes whose zones must be written in sequence; accepted: \
         \"append\""
    );
    let mixed = nodes.clone() + &zones("z0", "h0");
    let keys = "track_blocks = 5\nband_tracks = 4";
    let error = refused(&(mixed.clone() + &array("raid4smr", &(below.replace("z1", "h1") + keys))));
    says(&error, &["node `array`: some homes have zones", "; accepted: homes that are all alike"]);
    let more = nodes + &disk("h2", "small-smr") + &zones("z", "h2");
    for below in [
        "below = { homes = [\"h0\", \"h1\"], data = \"z\", parity = \"d1\" }\nspares = [\"d0\"]\n",
        "below = { homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"z\" }\nspares = [\"d1\"]\n",
        "below = { homes = [\"h0\", \"h1\"], data = \"d0\", parity = \"d1\" }\nspares = [\"z\"]\n",
    ] {
        let error = refused(&(more.clone() + &array("raid4smr", &format!("{below}{keys}"))));
        says(&error, &["node `z`: its zones must be written in sequence", "as one of its homes"]);
    }
}

#[test]
fn bands_of_a_disk_need_homes_that_are_disks() {
    let nodes =
        disk("h0", "small-smr") + &disk("h1", "small-smr") + &disks(2) + &slice("s", "h0", "0 B");
    let below = "below = { homes = [\"s\", \"h1\"], data = \"d0\", parity = \"d1\" }\n";
    let keys = format!("{below}bands = \"disk\"\ntrack_blocks = 5\nband_tracks = 2");
    assert_eq!(
        refused(&(nodes + &array("raid4smr", &keys))),
        "node `array`: bands = \"disk\", and home `s` is no disk; accepted: nodes of kind \"disk\", or bands \
         = \"arithmetic\""
    );
}

#[test]
fn what_would_hold_wrong_data_is_refused_where_disks_hold_some() {
    let stamped = |nodes: &str| built(nodes, ContentKind::Stamped);
    assert_eq!(stamped(&smr("placement = \"static\"")), Ok(()));
    let free =
        stamped(&smr("placement = \"static\"\nfirst_write = \"free\"")).expect_err("it loses data");
    says(
        &free,
        &["node `array`: first_write = \"free\"", "; accepted where disks hold contents: \"rule\""],
    );
    let arithmetic = smr("").replace("bands = \"disk\"", "bands = \"arithmetic\"");
    let error = stamped(&arithmetic).expect_err("tracks overlap");
    says(
        &error,
        &["node `array`: bands = \"arithmetic\"", "; accepted where disks hold contents: \"disk\""],
    );
}

#[test]
fn arrays_are_not_served_and_say_why() {
    for kind in ["raid4", "raid5"] {
        let config = StackConfig::load(kind, &[]).expect("a ready-made stack");
        let refused = config.node.iter().find_map(NodeConfig::refused_by_serving);
        let refused = refused.expect("it is simulated alone");
        let kind = format!("kind = \"{kind}\"");
        says(
            &refused,
            &["node `array`: ", &kind, " keeps no journal", "; accepted: arrays of kind \"raid1\""],
        );
    }
    let others = ["spanned", "striped", "pore", "raid1", "raid4smr"]
        .map(|name| StackConfig::load(name, &[]).expect("a stack"));
    let mut others = others.iter().flat_map(|config| &config.node);
    assert!(others.all(|node| node.refused_by_serving().is_none()));
}

#[test]
fn settings_reach_the_arrays_that_have_the_key() {
    let load = |name: &str, text: &str| {
        let setting = Setting::parse(text).expect("a setting");
        let config = StackConfig::load(name, std::slice::from_ref(&setting));
        config.map(|config| config.takes(&setting)).map_err(|error| error.to_string())
    };
    for (name, is_taken) in [("raid4smr", true), ("raid5", false), ("raid1", false)] {
        assert_eq!(load(name, "array.collect_at=5"), Ok(is_taken), "{name}");
    }
    assert_eq!(load("raid4smr", "array.placement=static"), Ok(true));
    let error = load("raid4smr", "array.placement=statik").expect_err("no such word");
    says(&error, &["--set array.placement=\"statik\"", "did you mean `static`?"]);
    let error = load("raid5", "array.colect_at=5").expect_err("no such key");
    says(&error, &["--set array.colect_at=5: unknown field `colect_at`"]);
}
