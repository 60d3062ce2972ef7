//! The keys of nodes: to which policy or kind one belongs, and its older names.

use imbrex_stack::{NodeConfig, Setting, StackConfig, check_taken, kinds, ready_made};

/// The cache of an LRU image as the build of commit 37db040 has described it.
const CACHE_OF_VERSION_2: &str = r#"
[[node]]
kind = "write-back-cache"
name = "cache"
capacity = "2 %"
mode = "read-write"
policy = "lru"
destage_slots = 64
destage = "durable"
zone = "20 MiB"
period_persistent_caches = 1.0
open_zones = "bl"
period_counter = "write_miss"
popularity_window = "period"
access_floor = 1

[node.below]
flash = "ssd"
backing = "cmr"
"#;

fn stack(cache: &str) -> String {
    let disk = |name: &str, drive: &str| {
        format!("[[node]]\nkind = \"disk\"\nname = \"{name}\"\ndrive = \"{drive}\"\n")
    };
    let disks = [disk("cmr", "cmr-500gb-7200"), disk("ssd", "850evo")].concat();
    format!("name = \"lru\"\n{disks}{cache}")
}

fn refused(text: &str, settings: &[&str]) -> String {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    let refused = StackConfig::from_text("mine.toml", text, &settings);
    refused.expect_err("it is refused").to_string()
}

fn table(config: &StackConfig) -> toml::Table {
    toml::Table::try_from(config).expect("a table")
}

fn load(name: &str, settings: &[&str]) -> StackConfig {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse(text).expect("a setting")).collect();
    StackConfig::load(name, &settings).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_key_of_another_policy_is_refused_and_an_unknown_one_has_its_nearest() {
    let lru = CACHE_OF_VERSION_2.split("zone =").next().expect("a text");
    let below = "below = { flash = \"ssd\", backing = \"cmr\" }\n";
    let with = |key: &str| stack(&format!("{lru}{key}\n{below}"));
    let error = refused(&with("zone = \"20 MiB\""), &[]);
    assert!(
        error.ends_with("`cache.zone` belongs to policy \"pore\"; this node has policy \"lru\""),
        "{error}"
    );
    let error = refused(&with("destage_slot = 3"), &[]);
    assert!(error.contains("did you mean `destage_slots`?"), "{error}");
    let error = refused(&with("").replace("\"lru\"", "\"lur\""), &[]);
    assert!(error.contains("did you mean \"lru\"?"), "{error}");
    let error = refused(&with(""), &["cache.destage_slots=-1"]);
    assert!(error.contains("destage_slots=-1"), "{error}");
}

#[test]
fn a_setting_reaches_the_stacks_whose_policy_has_the_key() {
    // The node `cache` of these is a read cache, which has no policy.
    let others = ["hwsr", "s-block"];
    for name in ready_made().filter(|name| !others.contains(name)) {
        let config = load(name, &["cache.zone=2MiB"]);
        let setting = Setting::parse("cache.zone=2MiB").expect("a setting");
        let has_zones = name.starts_with("pore") || name.starts_with("ride");
        assert_eq!(config.takes(&setting), has_zones, "{name}");
        let is_changed = table(&config) != table(&load(name, &[]));
        assert_eq!(is_changed, has_zones, "{name}");
    }
    // A policy that is set decides, wherever it stands, and the keys of the old one go with it.
    let made = load("lru", &["cache.zone=2MiB", "cache.policy=pore"]);
    let set = load("pore", &["cache.zone=2MiB"]);
    assert_eq!(table(&made)["node"], table(&set)["node"]);
    let back = load("pore-cf", &["cache.policy=lru"]);
    assert_eq!(table(&back)["node"], table(&load("lru", &[]))["node"]);
}

#[test]
fn an_image_that_states_the_keys_of_all_policies_is_that_of_its_own() {
    let described = stack(CACHE_OF_VERSION_2);
    let error = refused(&described, &[]);
    assert!(error.contains("belongs to policy \"pore\""), "{error}");
    let kept = StackConfig::from_image(&described).unwrap_or_else(|error| panic!("{error}"));
    let lines = CACHE_OF_VERSION_2.lines();
    let foreign = ["zone", "period_", "open_zones", "popularity", "access"];
    let own = lines.filter(|line| !foreign.iter().any(|key| line.starts_with(key)));
    let own: Vec<&str> = own.collect();
    let asked = StackConfig::from_text("mine.toml", &stack(&own.join("\n")), &[]);
    let asked = asked.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(table(&kept), table(&asked));
    // PORE keeps them all.
    let described = described.replace("policy = \"lru\"", "policy = \"pore\"");
    let kept = StackConfig::from_image(&described).unwrap_or_else(|error| panic!("{error}"));
    let cache = &table(&kept)["node"][2];
    assert_eq!(cache["zone"].as_str(), Some("20 MiB"));
}

#[test]
fn only_a_drive_that_rotates_can_stop_rotating() {
    let disk = |keys: &str| {
        let stack = format!("name = \"x\"\n[[node]]\nkind = \"disk\"\nname = \"d\"\n{keys}");
        StackConfig::from_text("mine.toml", &stack, &[])
    };
    let memory = "media = \"memory\"\nsize = \"1 GiB\"\nsurvives = \"power\"\nrotation = \"off\"\n";
    let error = disk(memory).expect_err("it is refused").to_string();
    assert!(error.contains("rotation is about a drive"), "{error}");
    let error = disk("drive = \"intel320\"\nrotation = \"no\"\n").expect_err("it is refused");
    assert!(error.to_string().contains("expected `on` or `off`"), "{error}");
    let still = disk("drive = \"wd1002faex\"\nrotation = \"off\"\n").expect("a stack");
    assert_eq!(table(&still)["node"][0]["rotation"].as_str(), Some("off"));
    assert!(table(&load("hdd", &[]))["node"][0].get("rotation").is_none());
}

#[test]
fn an_unknown_kind_is_told_all_that_there_are() {
    let error = refused("name = \"x\"\n[[node]]\nkind = \"none\"\n", &[]);
    let listed = error.split("accepted: ").nth(1).expect("a list");
    let listed: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
    let known = kinds();
    assert_eq!(listed, known.iter().map(|kind| kind.kind).collect::<Vec<_>>());
    let node: NodeConfig = load("pore", &[]).node.remove(3);
    assert_eq!(node.owner_of("zone"), None);
}

#[test]
fn an_older_name_of_a_key_is_read_and_one_of_the_two_is_set() {
    let stack = |key: &str| {
        let shown = include_str!("../../../../stacks/ride.toml");
        let text = shown.replace("policy = \"ride\"", &format!("policy = \"ride\"\n{key}"));
        StackConfig::from_text("mine.toml", &text, &[]).map_err(|error| error.to_string())
    };
    let batch = |config: &StackConfig| table(config)["node"][3]["batch"].as_integer();
    assert_eq!(batch(&stack("batch = 7").expect("the older name")), Some(7));
    assert_eq!(batch(&stack("destage_batch = 7").expect("the name")), Some(7));
    let error = stack("batch = 7\ndestage_batch = 8").expect_err("both names");
    assert!(error.contains("`destage_batch` and `batch` are the same key"), "{error}");
    for name in ["batch", "destage_batch"] {
        let set = load("ride", &[&format!("cache.{name}=9")]);
        assert_eq!(batch(&set), Some(9), "{name}");
    }
}

#[test]
fn a_key_of_another_translation_leaves_a_stack_as_it_is() {
    let setting = |text: &str| Setting::parse(text).expect("a setting");
    let load =
        |name: &str, settings: &[Setting]| StackConfig::load(name, settings).expect("a stack");
    let (journal, spare) = (setting("translation.journal=off"), setting("translation.spare=5%"));
    let both = [journal.clone(), spare.clone()];
    let stacks = ["hwsr", "s-block", "pore"].map(|name| load(name, &both));
    assert_eq!(stacks.each_ref().map(|stack| stack.takes(&journal)), [true, false, false]);
    assert_eq!(stacks.each_ref().map(|stack| stack.takes(&spare)), [false, true, false]);
    assert!(check_taken(&journal, stacks.iter(), "no stack").is_ok());
    let refused = check_taken(&journal, stacks[2..].iter(), "no stack").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "--set translation.journal: `translation.journal` belongs to kind \"segments\"; no stack has \
         a node `translation` of that kind"
    );
    let chunk = setting("array.chunk=64KiB");
    let arrays =
        ["spanned", "striped", "dedicated"].map(|name| load(name, std::slice::from_ref(&chunk)));
    assert_eq!(arrays.each_ref().map(|stack| stack.takes(&chunk)), [false, true, false]);
    let typo = StackConfig::load("hwsr", &[setting("translation.jurnal=off")]).unwrap_err();
    assert!(typo.to_string().contains("unknown field `jurnal`"), "{typo}");
}
