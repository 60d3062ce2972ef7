//! The NBD protocol as bytes, without sockets: what arrives is decoded, what leaves is encoded.
//!
//! Source: the NetworkBlockDevice project, `doc/proto.md`. Only the fixed newstyle handshake and
//! simple replies are spoken.

pub mod client;
pub mod handshake;
pub mod transmission;

/// Smallest block size told to clients that ask: requests are served to the byte.
pub const BLOCK_BYTES_MIN: u32 = 1;
/// The block size clients should prefer. A write that covers a part of a block reads the block
/// first.
pub const BLOCK_BYTES_PREFERRED: u32 = 4096;
/// The largest payload of a read or a write.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// The `N` bytes from `at`. Panics when there are fewer.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a slice of N bytes")
}

fn be_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

fn be_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}
