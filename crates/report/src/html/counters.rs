//! What every node has counted, node by node and run beside run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::super::drawn::CHART_RUNS_MAX;
use super::super::report::{Report, Run};
use crate::format::count;
use crate::page::{chip, escape, open_scroll, open_section};
use imbrex_core::counters::{GROUPS, declared};

/// A folded table for each node: its counters, and a column for each run that has a node of the name.
pub(super) fn of_nodes(report: &Report, body: &mut String) {
    let runs: Vec<(usize, &Run)> = report.runs.iter().take(CHART_RUNS_MAX).enumerate().collect();
    let nodes: BTreeSet<&str> =
        runs.iter().flat_map(|(_, run)| run.nodes.keys()).map(String::as_str).collect();
    if nodes.is_empty() {
        return;
    }
    open_section(
        "Nodes",
        "What every node of the stacks has counted, gauges as they were at the end. Point at a name for \
         what it is. nodes.csv has the same of all runs.",
        body,
    );
    for node in nodes {
        let of_node: Vec<Counted<'_>> = runs
            .iter()
            .filter_map(|(index, run)| Some((*index, *run, run.nodes.get(node)?)))
            .collect();
        table(node, &of_node, body);
    }
    body.push_str("</section>\n");
}

/// A run by its number, and what a node of it has counted.
type Counted<'a> = (usize, &'a Run, &'a BTreeMap<String, u64>);

fn table(node: &str, runs: &[Counted<'_>], body: &mut String) {
    let name = escape(node);
    let _ = write!(body, "<details><summary>{name}</summary>");
    open_scroll(&format!("what {node} has counted"), body);
    body.push_str(
        "<table><thead><tr><th scope=\"col\">counter</th><th scope=\"col\" class=\"text\">unit</th>",
    );
    for (index, run, _) in runs {
        let _ = write!(body, "<th scope=\"col\">{}{}</th>", chip(*index), escape(&run.label()));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for counter in counters(runs) {
        let known = declared(counter);
        let sentence = known.map_or("", |known| known.sentence);
        let unit = known.map_or("", |known| known.unit.name());
        let _ = write!(
            body,
            "<tr><th scope=\"row\" title=\"{}\">{}</th><td class=\"text\">{unit}</td>",
            escape(sentence),
            escape(counter)
        );
        for (_, _, counts) in runs {
            let value = counts.get(counter).map_or_else(|| "-".to_string(), |value| count(*value));
            let _ = write!(body, "<td>{value}</td>");
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div></details>\n");
}

/// The names of what was counted, in the order of their declarations, then those of older programs.
fn counters<'a>(runs: &[Counted<'a>]) -> Vec<&'a str> {
    let named: BTreeSet<&str> =
        runs.iter().flat_map(|(_, _, counts)| counts.keys()).map(String::as_str).collect();
    let declared: Vec<&str> =
        GROUPS.iter().flat_map(|group| group.declared()).map(|known| known.name).collect();
    let (mut known, others): (Vec<&str>, Vec<&str>) =
        named.into_iter().partition(|name| declared.contains(name));
    known.sort_by_key(|name| declared.iter().position(|other| other == name));
    known.extend(others);
    known
}
