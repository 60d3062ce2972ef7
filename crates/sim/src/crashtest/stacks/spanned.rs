//! A span over nodes.

use super::{Assembly, Tree};
use imbrex_core::disk::Geometry;
use imbrex_core::span::Span;
use imbrex_core::stack::NodeId;

/// Adds a span over nodes, and these.
pub fn build(assembly: &mut Assembly, below: &[Tree]) -> NodeId {
    let nodes = below.iter().map(|tree| assembly.node(tree, None));
    let nodes: Vec<NodeId> = nodes.collect();
    let geometries = nodes.iter().map(|node| assembly.builder.geometry(*node));
    let geometries: Vec<&Geometry> = geometries.collect();
    let (span, told) = Span::new(&geometries).expect("nodes that take writes anywhere");
    assembly.builder.layer(Box::new(span), told, &nodes)
}
