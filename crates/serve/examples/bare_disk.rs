//! Serves one file with nothing between the clients and the disk.
//!
//! `cargo run --release -p imbrex-serve --example bare_disk FILE SOCKET`: what a stack costs is
//! the difference to this.

use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Geometry, Media};
use imbrex_core::engine::Engine;
use imbrex_core::stack::StackBuilder;
use imbrex_core::units::BlockCount;
use imbrex_serve::disk::{DirectIo, FileDisk};
use imbrex_serve::listener::Listen;
use imbrex_serve::nbd::handshake::Export;
use imbrex_serve::server::Server;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, socket] = arguments.as_slice() else {
        return Err("usage: bare_disk FILE SOCKET".into());
    };
    let mut server = Server::bind(&Listen::Unix(socket.into()))?;
    server.stop_on_signals()?;
    let blocks = BlockCount::from_bytes_floor(std::fs::metadata(file)?.len());
    let geometry = Geometry::plain(blocks, Media::Conventional);
    let disk = FileDisk::open(Path::new(file), geometry.clone(), DirectIo::Off, server.waker())?;
    let mut builder = StackBuilder::new(0);
    let top = builder.disk(geometry);
    let mut engine = Engine {
        stack: builder.build(top),
        disks: vec![Box::new(disk)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 1,
    };
    println!("{}", server.uri());
    let export = Export {
        name: "bare".into(),
        description: "a file".into(),
        offset: 0,
        bytes: blocks.bytes(),
        is_read_only: false,
    };
    Ok(server.run(&mut engine, vec![export], &mut |_, _| {})?)
}
