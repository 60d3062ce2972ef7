//! The tables of nodes, brought together by what they are of.

use super::node_table::NodeTable;
use super::report::{Report, Run};

/// The tables of one name that nodes of one kind have in all runs.
pub(super) struct KindTable<'a> {
    /// One of them, for what is the same of all.
    pub like: &'a NodeTable,
    /// All of them, each with the number of its run.
    pub of_nodes: Vec<(usize, &'a Run, &'a NodeTable)>,
}

impl Report {
    /// The tables of each kind and name, in the order in which they come up in the runs.
    pub(super) fn kind_tables(&self) -> Vec<KindTable<'_>> {
        let mut found: Vec<KindTable<'_>> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            for table in &run.figures.tables {
                let is_of = |known: &&mut KindTable<'_>| {
                    (&known.like.kind, &known.like.name) == (&table.kind, &table.name)
                };
                match found.iter_mut().find(is_of) {
                    Some(known) => known.of_nodes.push((index, run, table)),
                    None => {
                        found.push(KindTable { like: table, of_nodes: vec![(index, run, table)] })
                    }
                }
            }
        }
        found
    }
}
