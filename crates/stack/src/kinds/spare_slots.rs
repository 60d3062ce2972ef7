//! What caches say of their spare slots.

use super::NodeConfig;
use crate::config::StackConfig;

/// The share of its capacity that `create` gives a cache in spare slots.
const SHARE: f64 = 0.25;

impl StackConfig {
    /// States of every cache how many spare slots it has, where the stack does not say: `create` does so, since
    /// an image that says nothing has none.
    pub fn state_spare_slots(&mut self) {
        for share in self.spare_shares() {
            share.get_or_insert(SHARE);
        }
    }

    /// Takes over from another stack with the same nodes what this one does not say of spare slots.
    pub fn take_spare_slots(&mut self, of: &StackConfig) {
        let mut of = of.clone();
        for (share, of) in self.spare_shares().zip(of.spare_shares()) {
            *share = share.or(*of);
        }
    }

    fn spare_shares(&mut self) -> impl Iterator<Item = &mut Option<f64>> {
        self.node.iter_mut().filter_map(|node| match node {
            NodeConfig::WriteBackCache(cache) => Some(&mut cache.spare_share),
            _ => None,
        })
    }
}
