//! Stacks with arrays that cannot be: each is refused with the node, the key, the value and what would do.

use imbrex_core::buffer::ContentKind;
use imbrex_stack::{BuildOptions, NodeConfig, Plan, StackConfig};

/// A disk of a few hundred blocks, or of two thousand.
fn disk(name: &str, drive: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drives");
    format!("[[node]]\nname = \"{name}\"\nkind = \"disk\"\ndrive = \"{folder}/{drive}.toml\"\n")
}

/// A node of a kind over one other.
fn over(name: &str, below: &str, rest: &str) -> String {
    format!("[[node]]\nname = \"{name}\"\nbelow = \"{below}\"\n{rest}\n")
}

fn of_kind(text: &str, contents: ContentKind) -> Result<StackConfig, String> {
    let config = StackConfig::from_text("s.toml", text, &[]).map_err(|error| error.to_string())?;
    let plan = Plan::new(&config, &BuildOptions::simulate(1)).map_err(|error| error.to_string())?;
    plan.build(None, None, contents).map_err(|error| error.to_string())?;
    Ok(config)
}

#[test]
fn explore() {
    let show = |what: &str, text: &str| {
        let r = of_kind(text, ContentKind::Counted).map(|_| ());
        println!("{what}\n    => {r:?}");
    };
    let names = |n: usize| (0..n).map(|i| format!("\"d{i}\"")).collect::<Vec<_>>().join(", ");
    let base = |n: usize| {
        let mut text = "name = \"s\"\n".to_string();
        for member in 0..n {
            text += &disk(&format!("d{member}"), "tiny-cmr");
        }
        text
    };
    for (kind, n) in [
        ("raid1", 0),
        ("raid1", 1),
        ("raid1", 2),
        ("raid1", 4),
        ("raid1", 5),
        ("raid4", 2),
        ("raid4", 3),
        ("raid5", 2),
        ("raid5", 3),
        ("raid5", 64),
        ("raid5", 65),
    ] {
        let t = base(n)
            + &format!("[[node]]\nname = \"array\"\nkind = \"{kind}\"\nbelow = [{}]\n", names(n));
        show(&format!("{kind} {n}"), &t);
    }
    let five =
        |more: &str| base(4) + &format!("[[node]]\nname = \"array\"\nkind = \"raid5\"\n{more}\n");
    for more in [
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspare = [\"d3\"]",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = []",
        "below = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d3\"]",
        "below = [\"d0\", \"d1\", \"d2\"]\nspares = \"d3\"",
        "below = [\"d0\", \"d1\", \"d2\"]\nspares = [3]",
        "below = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d4\"]",
        "below = [\"d0\", \"d1\", \"d2\"]\nspares = [\"d2\"]",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"d2\"]",
        "below = [\"d0\", \"d1\", \"d2\", \"d2\"]",
        "below = [\"d0\", \"d1\", \"d2\", \"dd3\"]",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nchunk = \"64 KiB\"",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nplacement = \"static\"",
        "below = { homes = [\"d0\", \"d1\"], data = \"d2\", parity = \"d3\" }",
        "below = \"d0\"",
        "below = []",
        "",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\ndurable = true",
        "below = [\"d0\", \"d1\", \"d2\", \"d3\"]\nspares = [\"array\"]",
    ] {
        show(more, &five(more));
    }
    // slices
    let slices = |a: &str, b: &str, c: &str, more: &str| {
        base(3)
            + &over("s0", a, "kind = \"slice\"\noffset = \"0 B\"\nsize = \"400 KiB\"")
            + &over("s1", b, "kind = \"slice\"\noffset = \"400 KiB\"\nsize = \"400 KiB\"")
            + &over("s2", c, "kind = \"slice\"\noffset = \"800 KiB\"\nsize = \"400 KiB\"")
            + more
    };
    show(
        "slices one disk",
        &slices(
            "d0",
            "d0",
            "d1",
            "[[node]]\nname=\"array\"\nkind = \"raid5\"\nbelow = [\"s0\", \"s1\", \"s2\"]",
        ),
    );
    show(
        "slice and spare one disk",
        &slices(
            "d0",
            "d1",
            "d0",
            "[[node]]\nname=\"array\"\nkind = \"raid1\"\nbelow = [\"s0\", \"s1\"]\nspares = [\"s2\"]",
        ),
    );
    show(
        "slices ok",
        &slices(
            "d0",
            "d1",
            "d2",
            "[[node]]\nname=\"array\"\nkind = \"raid5\"\nbelow = [\"s0\", \"s1\", \"s2\"]",
        ),
    );
    // short spare, zones, shingled
    let short = base(2)
        + &disk("d2", "tiny-cmr")
        + &over("s2", "d2", "kind = \"slice\"\noffset = \"0 B\"\nsize = \"400 KiB\"");
    show(
        "short spare",
        &(short.clone()
            + "[[node]]\nname=\"array\"\nkind = \"raid1\"\nbelow = [\"d0\", \"d1\"]\nspares = [\"s2\"]"),
    );
    show(
        "short spare small size",
        &(format!("size = \"300 KiB\"\n{short}")
            + "[[node]]\nname=\"array\"\nkind = \"raid1\"\nbelow = [\"d0\", \"d1\"]\nspares = [\"s2\"]"),
    );
    show(
        "too large",
        &format!(
            "size = \"30 MiB\"\n{}[[node]]\nname=\"array\"\nkind = \"raid1\"\nbelow = [\"d0\", \"d1\"]\n",
            base(2)
        ),
    );
    show(
        "bare shingled",
        &(base(2)
            + &disk("smr", "small-smr")
            + "[[node]]\nname=\"array\"\nkind = \"raid5\"\nbelow = [\"d0\", \"d1\", \"smr\"]"),
    );
    show(
        "zoned raid5",
        &(base(2)
            + &disk("smr", "small-smr")
            + &over("z", "smr", "kind = \"host-managed\"\nzone_size = \"64 KiB\"")
            + "[[node]]\nname=\"array\"\nkind = \"raid5\"\nbelow = [\"d0\", \"d1\", \"z\"]"),
    );
    show(
        "zoned spare",
        &(base(2)
            + &disk("smr", "small-smr")
            + &over("z", "smr", "kind = \"host-managed\"\nzone_size = \"64 KiB\"")
            + "[[node]]\nname=\"array\"\nkind = \"raid1\"\nbelow = [\"d0\", \"d1\"]\nspares = [\"z\"]"),
    );
    explore_smr();
}

fn explore_smr() {
    let show = |what: &str, text: &str, contents: ContentKind| {
        let r = of_kind(text, contents).map(|_| ());
        println!("SMR {what}\n    => {r:?}");
    };
    let base = "name = \"s\"\n".to_string()
        + &disk("h0", "small-smr")
        + &disk("h1", "small-smr")
        + &disk("h2", "small-smr")
        + &disk("t0", "tiny-smr")
        + &disk("c0", "tiny-cmr")
        + &disk("c1", "tiny-cmr")
        + &disk("c2", "tiny-cmr")
        + "[[node]]\nname = \"m\"\nkind = \"disk\"\nmedia = \"memory\"\nsize = \"8 MiB\"\nsurvives = \"power\"\n";
    let used = |text: &str| {
        // leave out nodes that are not named
        let mut out = String::new();
        for part in base.split("[[node]]").skip(1) {
            let name = part.split('"').nth(1).expect("name");
            if text.contains(&format!("\"{name}\"")) {
                out += "[[node]]";
                out += part;
            }
        }
        format!("name = \"s\"\n{out}")
    };
    let top = "below = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"c1\" }\n";
    let good = "track_blocks = 5\nband_tracks = 4\nbands = \"disk\"\n";
    let t = |below: &str, keys: &str| {
        let node = format!("[[node]]\nname = \"array\"\nkind = \"raid4smr\"\n{below}{keys}");
        used(&node) + &node
    };
    let counted = ContentKind::Counted;
    for keys in [
        "",
        "collect_at = 0",
        "collect_at = 1",
        "collect_at = 39",
        "collect_at = 40",
        "collect_at = 41",
        "collect_at = \"never\"",
        "collect_at = \"nevre\"",
        "collect_at = -1",
        "collect_at = 1.5",
        "collect_at = true",
        "collect_at = \"7\"",
        "collect_at = []",
        "placement = \"statik\"",
        "placement = 1",
        "placement = \"static\"",
        "first_write = \"fre\"",
        "first_write = \"free\"",
        "first_write = \"free\"\nplacement = \"static\"",
        "slots = \"lifo\"",
        "slots = 3",
        "data_capacity = \"0\"",
        "data_capacity = \"0 B\"",
        "data_capacity = \"5000 B\"",
        "data_capacity = \"4 KiB\"",
        "data_capacity = \"1600 KiB\"",
        "data_capacity = \"1604 KiB\"",
        "data_capacity = \"2 MiB\"",
        "data_capacity = 5",
        "data_capacity = \"50 %\"",
        "data_capacity = \"x\"",
        "colect_at = 5",
        "chunk = \"4 KiB\"",
        "spare = [\"c2\"]",
        "spares = [\"c2\"]",
        "spares = [\"m\"]",
        "spares = [\"h2\"]",
        "spares = \"c2\"",
        "spares = [\"c9\"]",
        "spares = []",
        "durable = true",
        "capacity = \"5 MiB\"",
    ] {
        show(keys, &t(top, &format!("{good}{keys}")), counted);
    }
    for keys in [
        "track_blocks = 0",
        "track_blocks = -1",
        "track_blocks = 1000001",
        "track_blocks = \"8\"",
        "band_tracks = 0",
        "band_tracks = 1000001",
        "track_blocks = 1000000\nband_tracks = 1000000",
        "bands = \"disc\"",
        "bands = \"uniform:64KiB..144KiB\"",
        "",
        "track_blocks = 5\nband_tracks = 4",
        "track_blocks = 205\nband_tracks = 1",
        "track_blocks = 200\nband_tracks = 1",
        "track_blocks = 201\nband_tracks = 1",
        "track_blocks = 201\nband_tracks = 1\nbands = \"disk\"",
        "track_blocks = 1500\nband_tracks = 1",
        "track_blocks = 1500\nband_tracks = 1\nbands = \"disk\"",
    ] {
        show(keys, &t(top, keys), counted);
    }
    for below in [
        "below = { homes = [\"h0\"], data = \"c0\", parity = \"c1\" }",
        "below = { homes = [], data = \"c0\", parity = \"c1\" }",
        "below = { homes = \"h0\", data = \"c0\", parity = \"c1\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"c0\" }",
        "below = { homes = [\"h0\", \"h1\"], parity = \"c0\" }",
        "below = { data = \"c0\", parity = \"c1\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"c0\" }",
        "below = { homes = [\"h0\", \"h0\"], data = \"c0\", parity = \"c1\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"h1\", parity = \"c0\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"h2\", parity = \"c0\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"h2\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"c0\", partiy = \"c1\" }",
        "below = { homes = [\"h0\", \"h1\"], data = [\"c0\"], parity = \"c1\" }",
        "below = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"c9\" }",
        "below = { homes = [\"h0\", \"c2\"], data = \"c0\", parity = \"c1\" }",
        "below = { homes = [\"h0\", \"m\"], data = \"c0\", parity = \"c1\" }",
        "below = { homes = [\"h0\", \"t0\"], data = \"c0\", parity = \"c1\" }",
        "below = [\"h0\", \"h1\", \"c0\", \"c1\"]",
        "below = \"h0\"",
        "",
    ] {
        show(below, &t(&format!("{below}\n"), good), counted);
    }
    let zones = |name: &str, of: &str, size: &str| {
        over(name, of, &format!("kind = \"host-managed\"\nzone_size = \"{size}\""))
    };
    let with = |more: String, node: &str| {
        let node = format!("[[node]]\nname = \"array\"\nkind = \"raid4smr\"\n{node}");
        used(&(more.clone() + &node)) + &more + &node
    };
    let zz = zones("z0", "h0", "64 KiB") + &zones("z1", "h1", "64 KiB");
    let zb = "below = { homes = [\"z0\", \"z1\"], data = \"c0\", parity = \"c1\" }\n";
    for keys in [
        "",
        "placement = \"static\"",
        "bands = \"disk\"",
        "collect_at = 32",
        "collect_at = 31",
        "track_blocks = 7",
    ] {
        show(&format!("zones {keys}"), &with(zz.clone(), &format!("{zb}{keys}")), counted);
    }
    show(
        "mixed zones",
        &with(
            zones("z0", "h0", "64 KiB"),
            "below = { homes = [\"z0\", \"h1\"], data = \"c0\", parity = \"c1\" }\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "differing zones",
        &with(zones("z0", "h0", "64 KiB") + &zones("z1", "h1", "128 KiB"), zb),
        counted,
    );
    show(
        "huge zones",
        &with(zones("z0", "h0", "6 MiB") + &zones("z1", "h1", "6 MiB"), zb),
        counted,
    );
    show(
        "zoned data",
        &with(
            zones("z0", "h2", "64 KiB"),
            "below = { homes = [\"h0\", \"h1\"], data = \"z0\", parity = \"c1\" }\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "zoned parity",
        &with(
            zones("z0", "h2", "64 KiB"),
            "below = { homes = [\"h0\", \"h1\"], data = \"c1\", parity = \"z0\" }\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "zoned spare",
        &with(
            zones("z0", "h2", "64 KiB"),
            "below = { homes = [\"h0\", \"h1\"], data = \"c1\", parity = \"c0\" }\nspares = [\"z0\"]\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    let slice = |name: &str, of: &str, at: &str| {
        over(name, of, &format!("kind = \"slice\"\noffset = \"{at}\"\nsize = \"400 KiB\""))
    };
    show(
        "slices of one",
        &with(
            slice("s0", "c0", "0 B") + &slice("s1", "c0", "400 KiB"),
            "below = { homes = [\"h0\", \"h1\"], data = \"s0\", parity = \"s1\" }\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "slices homes disk bands",
        &with(
            slice("s0", "h0", "0 B") + &slice("s1", "h1", "400 KiB"),
            "below = { homes = [\"s0\", \"s1\"], data = \"c0\", parity = \"c1\" }\nbands = \"disk\"\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "slices homes arithmetic",
        &with(
            slice("s0", "h0", "0 B") + &slice("s1", "h1", "400 KiB"),
            "below = { homes = [\"s0\", \"s1\"], data = \"c0\", parity = \"c1\" }\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    show(
        "short spare",
        &with(
            slice("s0", "c2", "0 B"),
            "below = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"c1\" }\nspares = [\"s0\"]\nbands = \"disk\"\ntrack_blocks = 5\nband_tracks = 2\n",
        ),
        counted,
    );
    for (name, keys) in [
        ("free", "placement = \"static\"\nfirst_write = \"free\""),
        ("arith", ""),
        ("disk", "bands = \"disk\""),
    ] {
        show(
            &format!("contents {name}"),
            &t(top, &format!("track_blocks = 5\nband_tracks = 4\n{keys}")),
            ContentKind::Stamped,
        );
    }
    show("too large", &format!("size = \"30 MiB\"\n{}", t(top, good)), counted);
    for name in ["raid1", "raid4", "raid5", "raid4smr"] {
        let config = StackConfig::load(name, &[]).expect("ready");
        println!("SERVE {:?}", config.node.iter().find_map(NodeConfig::refused_by_serving));
    }
}

#[test]
fn explore2() {
    let show = |what: &str, text: &str, contents: ContentKind| {
        let r = of_kind(text, contents).map(|_| ());
        println!("X {what}\n    => {r:?}");
    };
    let slice = |name: &str, of: &str, at: &str, size: &str| {
        over(name, of, &format!("kind = \"slice\"\noffset = \"{at}\"\nsize = \"{size}\""))
    };
    for drive in ["small-smr", "tiny-cmr"] {
        for (o, size) in
            [("0 B", "400 KiB"), ("400 KiB", "400 KiB"), ("0 B", "800 KiB"), ("0 B", "1 MiB")]
        {
            let text = "name = \"s\"\n".to_string()
                + &disk("h0", drive)
                + &disk("h1", drive)
                + &disk("c0", "tiny-cmr")
                + &disk("c1", "tiny-cmr")
                + &slice("s0", "h0", o, size)
                + &slice("s1", "h1", o, size)
                + "[[node]]\nname = \"array\"\nkind = \"raid4smr\"\nbelow = { homes = [\"s0\", \"s1\"], data = \"c0\", parity = \"c1\" }\ntrack_blocks = 5\nband_tracks = 2\n";
            show(&format!("slices {drive} {o} {size}"), &text, ContentKind::Counted);
            show(&format!("contents slices {drive} {o} {size}"), &text, ContentKind::Stamped);
        }
    }
    for (spare, drive) in [("cmr", "cmr-500gb-7200"), ("ssd", "850evo")] {
        for contents in [ContentKind::Counted, ContentKind::Stamped] {
            let text = "name = \"s\"\nsize = \"400 KiB\"\n".to_string()
                + &disk("h0", "tiny-cmr")
                + &disk("h1", "tiny-cmr")
                + &disk("c0", "tiny-cmr")
                + &disk("c1", "tiny-cmr")
                + &format!("[[node]]\nname = \"sp\"\nkind = \"disk\"\ndrive = \"{drive}\"\n")
                + "[[node]]\nname = \"array\"\nkind = \"raid4smr\"\nbelow = { homes = [\"h0\", \"h1\"], data = \"c0\", parity = \"c1\" }\nspares = [\"sp\"]\ntrack_blocks = 5\nband_tracks = 2\n";
            show(&format!("spare {spare} {contents:?}"), &text, contents);
            let text = text.replace("spares = [\"sp\"]\n", "").replace(
                &format!("[[node]]\nname = \"sp\"\nkind = \"disk\"\ndrive = \"{drive}\"\n"),
                "",
            );
            show(&format!("cmr homes {contents:?}"), &text, contents);
        }
    }
    let mut text = "name = \"s\"\n".to_string();
    let mut list = Vec::new();
    for m in 0..65 {
        text += &disk(&format!("d{m}"), "tiny-cmr");
        if m < 64 {
            list.push(format!("\"d{m}\""));
        }
    }
    text += &format!(
        "[[node]]\nname = \"array\"\nkind = \"raid5\"\nbelow = [{}]\nspares = [\"d64\"]\n",
        list.join(", ")
    );
    show("64 and a spare", &text, ContentKind::Counted);
    for (stack, set) in [
        ("raid5", "array.collect_at=5"),
        ("raid4smr", "array.collect_at=5"),
        ("raid4smr", "array.collect_at=band"),
        ("raid4smr", "array.collect_at=bnad"),
        ("raid4smr", "array.spares=[\"x\"]"),
        ("raid1", "array.chunk=64KiB"),
        ("raid4smr", "array.placement=static"),
        ("raid4smr", "array.collect_at=-1"),
        ("raid4smr", "array.data_capacity=20TB"),
        ("raid4smr", "array.collect_at=200000000"),
    ] {
        let set = imbrex_stack::Setting::parse(set);
        let set = match set {
            Ok(s) => s,
            Err(e) => {
                println!("SET {e}");
                continue;
            }
        };
        let c = StackConfig::load(stack, &[set.clone()]).map_err(|e| e.to_string());
        match c {
            Err(e) => println!("SET {stack} {e}"),
            Ok(c) => {
                println!("SET {stack} takes {}", c.takes(&set));
                let plan = Plan::new(
                    &c,
                    &BuildOptions { size_bytes: Some(1 << 30), ..BuildOptions::simulate(1) },
                );
                println!(
                    "    {:?}",
                    plan.map_err(|e| e.to_string()).and_then(|p| p
                        .build(None, None, ContentKind::Counted)
                        .map(|_| ())
                        .map_err(|e| e.to_string()))
                );
            }
        }
    }
    // sizes
    let text = "name = \"s\"\nsize = \"16 MiB\"\n".to_string()
        + &disk("h0", "small-smr")
        + &disk("h1", "small-smr")
        + &disk("h2", "small-smr")
        + "[[node]]\nname = \"c0\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n[[node]]\nname = \"c1\"\nkind = \"disk\"\ndrive = \"cmr-500gb-7200\"\n"
        + "[[node]]\nname = \"array\"\nkind = \"raid4smr\"\nbelow = { homes = [\"h0\", \"h1\", \"h2\"], data = \"c0\", parity = \"c1\" }\nbands = \"disk\"\ntrack_blocks = 20\nband_tracks = 4\ndata_capacity = \"8 MiB\"\n";
    let c = StackConfig::from_text("s.toml", &text, &[]).unwrap();
    for trim in [true, false] {
        let b = Plan::new(&c, &BuildOptions { trim_disks: trim, ..BuildOptions::simulate(1) })
            .unwrap()
            .build(None, None, ContentKind::Counted)
            .unwrap();
        for n in &b.describe.nodes {
            println!("{trim} NODE {} {:?}", n.name, n.blocks);
        }
    }
}
