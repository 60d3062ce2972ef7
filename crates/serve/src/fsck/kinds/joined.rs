//! Nodes that are joined to one: a span or a stripe.

use super::{Device, ReadDevice};
use imbrex_core::stripe::StripeLayout;
use imbrex_core::units::{BlockCount, Lba};
use std::rc::Rc;

/// Where the blocks of joined nodes lie.
#[derive(Clone, Copy, Debug)]
pub enum Joint {
    /// One node after another.
    Span,
    /// Chunks of so many blocks go round.
    Stripe(BlockCount),
}

/// What nodes offer together if all can be read.
pub fn of(devices: Vec<Option<Device>>, joint: Joint, offered: Option<u64>) -> Option<Device> {
    let devices: Vec<Device> = devices.into_iter().collect::<Option<_>>()?;
    let sizes: Vec<u64> = devices.iter().map(|device| device.blocks).collect();
    let disks: Vec<&str> = devices.iter().map(|device| device.disk.as_str()).collect();
    let disk = disks.join(", ");
    let reads: Vec<ReadDevice> = devices.iter().map(|it| Rc::clone(&it.read)).collect();
    let smallest = BlockCount(sizes.iter().min().copied()?);
    let all = match joint {
        Joint::Span => sizes.iter().sum(),
        Joint::Stripe(chunk) => {
            let layout = StripeLayout::new(sizes.len(), chunk);
            layout.used_of_each(smallest).0 * sizes.len() as u64
        }
    };
    Some(Device {
        disk,
        blocks: offered.unwrap_or(all),
        read: Rc::new(move |address, into| {
            let (node, inside) = place(address, joint, &sizes);
            reads[node](inside, into)
        }),
        is_disk: None,
    })
}

/// The node that holds a block, and the address there.
fn place(address: u64, joint: Joint, sizes: &[u64]) -> (usize, u64) {
    match joint {
        Joint::Stripe(chunk) => {
            let (node, inside) = StripeLayout::new(sizes.len(), chunk).place_of(Lba(address));
            (node, inside.0)
        }
        Joint::Span => {
            let mut inside = address;
            for (node, size) in sizes.iter().enumerate() {
                match inside.checked_sub(*size) {
                    Some(rest) => inside = rest,
                    None => return (node, inside),
                }
            }
            panic!("block {address} is behind the nodes of a span");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_one_node_after_another_or_go_round() {
        let sizes = [4, 6, 5];
        let all = |joint, blocks: u64| -> Vec<(usize, u64)> {
            (0..blocks).map(|at| place(at, joint, &sizes)).collect()
        };
        let span = all(Joint::Span, 15);
        assert_eq!(span[3..5], [(0, 3), (1, 0)]);
        assert_eq!(span[9..11], [(1, 5), (2, 0)]);
        let stripe = all(Joint::Stripe(BlockCount(2)), 12);
        assert_eq!(stripe[1..7], [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2)]);
    }
}
