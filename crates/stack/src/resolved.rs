//! The keys of a node as its layer has got them, for reports.
//!
//! What a file states is *written*; over the drive file and the defaults it is *effective*; with shares and
//! scales worked out it is *resolved*.

use super::kinds::{NodeConfig, Reported, has_key};
use super::options::BuildOptions;
use serde_json::{Map, Value};

/// The keys that say what a node is and where it stands, which the configuration has.
const OF_TREE: [&str; 3] = ["kind", "name", "below"];

/// The resolved keys of a node that was built.
pub(crate) fn resolved(node: &NodeConfig, built: &dyn Reported, options: &BuildOptions) -> Value {
    let stated = serde_json::to_value(node).expect("keys are texts");
    let Value::Object(stated) = stated else {
        unreachable!("a node is a table");
    };
    let is_key =
        |(key, value): &(String, Value)| !value.is_null() && !OF_TREE.contains(&key.as_str());
    let mut keys: Map<String, Value> = stated.into_iter().filter(is_key).collect();
    if let Some(journal) = node.journal_keys() {
        let settings = journal.settings(options);
        let sizes = settings.map(|it| [it.ring_blocks, it.unflushed_blocks_max]);
        let [ring, unflushed] = sizes.map_or([None; 2], |sizes| sizes.map(Some));
        keys.insert("durable".to_owned(), settings.is_some().into());
        for (key, value) in [("ring_blocks", ring), ("unflushed_blocks_max", unflushed)] {
            match value.filter(|_| has_key(&node.keys(), key)) {
                Some(value) => keys.insert(key.to_owned(), value.into()),
                None => keys.remove(key),
            };
        }
    }
    keys.extend(built.resolved());
    Value::Object(keys)
}
