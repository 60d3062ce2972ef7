//! Puts a stack together.

use super::{DiskId, NodeId, Stack};
use crate::counters::Counts;
use crate::disk::Geometry;
use crate::layer::{Layer, Port};
use crate::rng::Rng;
use crate::router::{NodeState, PortState, Router, Stage};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Puts a stack together from the bottom up.
pub struct StackBuilder {
    seed: u64,
    layers: Vec<Option<Box<dyn Layer>>>,
    nodes: Vec<NodeState>,
    geometries: Vec<Geometry>,
    disks: u16,
}

impl StackBuilder {
    /// A builder whose layers draw their random numbers from `seed`.
    pub fn new(seed: u64) -> StackBuilder {
        StackBuilder {
            seed,
            layers: Vec::new(),
            nodes: Vec::new(),
            geometries: Vec::new(),
            disks: 0,
        }
    }

    /// Adds a leaf.
    pub fn disk(&mut self, geometry: Geometry) -> NodeId {
        let disk = DiskId(self.disks);
        self.disks += 1;
        self.push(None, geometry, Vec::new(), Some(disk))
    }

    /// Adds a layer over `below`, one node per port in the order of the ports. `geometry` is what
    /// the layer tells the node above. Panics when a node below has another parent already; a store
    /// of copies may have several.
    pub fn layer(&mut self, layer: Box<dyn Layer>, geometry: Geometry, below: &[NodeId]) -> NodeId {
        let stores = |node: &&NodeId| self.geometry(**node).copies.is_some();
        for node in below.iter().filter(|node| !stores(node)) {
            let taken = self.nodes.iter().flat_map(|n| &n.ports).any(|port| port.below == *node);
            assert!(!taken, "a node has two parents");
        }
        self.add_layer(layer, geometry, below)
    }

    /// Adds a layer over a part of `below`, which may have other such parents. The parts must not
    /// overlap.
    pub fn part(&mut self, layer: Box<dyn Layer>, geometry: Geometry, below: NodeId) -> NodeId {
        self.add_layer(layer, geometry, &[below])
    }

    /// Gives the member behind a port of a layer its number in the set.
    pub fn number_member(&mut self, node: NodeId, port: Port, number: u16) {
        self.nodes[usize::from(node.0)].ports[usize::from(port.0)].member = Some(number);
    }

    fn add_layer(&mut self, layer: Box<dyn Layer>, geometry: Geometry, below: &[NodeId]) -> NodeId {
        let ports = below
            .iter()
            .map(|below| PortState { below: *below, in_flight: 0, sent: 0, member: None })
            .collect();
        self.push(Some(layer), geometry, ports, None)
    }

    /// What a node tells the node above.
    pub fn geometry(&self, node: NodeId) -> &Geometry {
        &self.geometries[usize::from(node.0)]
    }

    /// The stack under `top`.
    pub fn build(self, top: NodeId) -> Stack {
        Stack {
            layers: self.layers,
            geometry: self.geometries[usize::from(top.0)].clone(),
            router: Router::new(self.nodes),
            top,
            unflushed: [false; 2],
        }
    }

    fn push(
        &mut self,
        layer: Option<Box<dyn Layer>>,
        geometry: Geometry,
        ports: Vec<PortState>,
        disk: Option<DiskId>,
    ) -> NodeId {
        let node = NodeId(self.nodes.len() as u16);
        self.nodes.push(NodeState {
            ports,
            blocks: geometry.blocks,
            disk,
            stage: Stage::Down,
            is_lost: false,
            rng: Rng::new(self.seed, u64::from(node.0)),
            counts: Counts::default(),
        });
        self.layers.push(layer);
        self.geometries.push(geometry);
        node
    }
}
