//! Which writes are sequential by themselves: those that go on where one of the last streams has ended, and long ones.
//! It is the classification of "A Method to Reduce Read/Write Head Movement for SMR Disks" (chapter 4), which leaves the limits
//! open.

use super::settings::StreamClasses;
use crate::extent::Extent;
use crate::saved::Saved;
use crate::units::Lba;
use alloc::vec::Vec;

/// The ends of the last streams of writes.
#[derive(Clone, Debug, Saved)]
pub(super) struct Classifier {
    #[saved(keep)]
    classes: StreamClasses,
    /// The one that came last stands last.
    ends: Vec<Lba>,
}

impl Classifier {
    /// Follows none yet.
    pub fn new(classes: StreamClasses) -> Classifier {
        Classifier { classes, ends: Vec::with_capacity(classes.streams as usize) }
    }

    /// Takes note of a write. True when it is sequential.
    pub fn follow(&mut self, extent: Extent) -> bool {
        let continues = |end: &Lba| {
            let gap = extent.start.0.checked_sub(end.0);
            gap.is_some_and(|gap| gap <= self.classes.gap_blocks.0)
        };
        // Of several that would do, the one that came last.
        let continued = self.ends.iter().rposition(continues);
        match continued {
            Some(place) => _ = self.ends.remove(place),
            None if self.ends.len() == self.classes.streams as usize => _ = self.ends.remove(0),
            None => {}
        }
        self.ends.push(extent.end());
        continued.is_some() || extent.blocks >= self.classes.large_blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BlockCount;

    fn classifier(streams: u32) -> Classifier {
        let (gap_blocks, large_blocks) = (BlockCount(16), BlockCount(64));
        Classifier::new(StreamClasses { streams, gap_blocks, large_blocks })
    }

    #[test]
    fn what_goes_on_and_what_is_long_is_sequential() {
        let mut classifier = classifier(2);
        let mut follow = |start, blocks| classifier.follow(Extent::new(start, blocks));
        assert!(!follow(100, 4), "the first of its stream");
        assert!(follow(104, 4));
        assert!(follow(124, 1), "a gap of 64 KiB");
        assert!(!follow(142, 1), "a gap of more");
        assert!(!follow(120, 1), "back by a block");
        assert!(follow(1000, 64), "long by itself");
        assert!(follow(1064, 1));
        assert!(!follow(5000, 63));
        // Two streams are followed: that at 121 was forgotten for the last one.
        assert!(!follow(121, 1));
        assert!(follow(5063, 1));
    }
}
