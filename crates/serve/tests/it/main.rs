//! The server as clients, tools and the file system see it.

mod bounds;
mod client;
mod control;
mod control_hostile;
mod exports;
mod faults;
mod file_disk;
mod fsck;
mod fsck_images;
mod fsck_layer_images;
mod fsck_layers;
mod fsck_mirror;
mod fsck_s_block_sums;
mod handshake;
mod held;
mod hostile;
mod image;
mod listener;
mod memory;
mod overlay;
mod server;
mod stalled;
mod support;
mod tools;
mod transmission;
mod unaligned;
