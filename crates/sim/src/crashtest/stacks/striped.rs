//! A stripe over nodes that keep what was flushed.

use super::{Assembly, Tree};
use imbrex_core::disk::Geometry;
use imbrex_core::stack::NodeId;
use imbrex_core::stripe::Stripe;
use imbrex_core::units::BlockCount;

/// Adds a stripe over nodes, and these.
pub fn build(assembly: &mut Assembly, chunk: BlockCount, below: &[Tree]) -> NodeId {
    let nodes = below.iter().map(|tree| assembly.node(tree, None));
    let nodes: Vec<NodeId> = nodes.collect();
    let geometries = nodes.iter().map(|node| assembly.builder.geometry(*node));
    let geometries: Vec<&Geometry> = geometries.collect();
    let (stripe, told) = Stripe::new(&geometries, chunk).expect("nodes that take writes anywhere");
    assembly.builder.layer(Box::new(stripe), told, &nodes)
}
