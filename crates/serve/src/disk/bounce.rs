//! Memory that a thread works in while the loop goes on.

use imbrex_core::units::BLOCK_BYTES;

/// Buffers kept for the next task.
const SPARE_MAX: usize = 64;
/// Longer buffers are not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// Direct I/O takes memory that starts at a multiple of it.
const ALIGNMENT: usize = BLOCK_BYTES as usize;

/// Bytes that start at a multiple of the block size, as direct I/O wants them.
#[derive(Debug, Default)]
pub(super) struct Bounce {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Bounce {
    /// `length` bytes, their content unspecified.
    pub fn new(length: usize) -> Bounce {
        let mut bounce = Bounce::default();
        bounce.resize(length);
        bounce
    }

    /// The same memory with `length` bytes, their content unspecified.
    pub fn resize(&mut self, length: usize) {
        let needed = length + ALIGNMENT - 1;
        if self.memory.len() < needed {
            self.memory.resize(needed, 0);
            self.start = self.memory.as_ptr().align_offset(ALIGNMENT);
        }
        self.length = length;
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// Bounce buffers that are not in use, so that a steady state allocates none.
#[derive(Debug, Default)]
pub(super) struct Spare {
    buffers: Vec<Bounce>,
}

impl Spare {
    /// A buffer of `length` bytes, their content unspecified.
    pub fn take(&mut self, length: usize) -> Bounce {
        let mut bounce = self.buffers.pop().unwrap_or_default();
        bounce.resize(length);
        bounce
    }

    /// Keeps a buffer for later.
    pub fn give_back(&mut self, bounce: Bounce) {
        let length = bounce.memory.len();
        if length > 0 && length <= SPARE_BYTES_MAX && self.buffers.len() < SPARE_MAX {
            self.buffers.push(bounce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_start_at_a_block_whatever_their_number() {
        let mut spare = Spare::default();
        for length in [1, 4096, 5000, 300, 1 << 20, 4096] {
            let mut bounce = spare.take(length);
            assert_eq!(bounce.bytes().len(), length);
            assert_eq!(bounce.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            bounce.bytes_mut().fill(7);
            assert_eq!(bounce.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            spare.give_back(bounce);
        }
    }
}
