//! Data that the records of a mirrored ledger speak of: it is written at the same address of every
//! port, and after a power cut one port that has it is enough.

use crate::common::harness::JumpingClock;
use crate::common::journal_disk::{ByteDisk, ByteMedium, Image};
use crate::copies_toy::journal_at;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::{Disk, Geometry, Media};
use imbrex_core::durability::{DurabilitySettings, JournalSettings, Replayed};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::ledger::{Ledger, LedgerEvent, WrittenData};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::stack::{Arrival, DiskId, StackBuilder};
use imbrex_core::units::{BlockCount, Instant};
use std::cell::RefCell;
use std::rc::Rc;

/// First block of the data on each port.
const DATA: u64 = 64;
/// Blocks of the data of the only record.
const BLOCKS: u64 = 4;
/// Where the second disk begins in the medium.
const SECOND: u64 = 1 << 20;

struct DataToy {
    ledger: Ledger<Request>,
    request: Option<Request>,
    in_flight: u32,
    replayed: Rc<RefCell<Vec<Replayed>>>,
}

fn settings(port: u8) -> JournalSettings {
    JournalSettings { member_blocks: BlockCount(DATA + BLOCKS), ..journal_at(port) }
}

impl DataToy {
    fn end_event(&mut self, ctx: &mut Context<'_>) {
        while let Some(event) = self.ledger.next_event() {
            match event {
                LedgerEvent::Blank => self.ledger.begin(Vec::new(), ctx),
                LedgerEvent::Recovered(recovery) => {
                    *self.replayed.borrow_mut() = recovery.records;
                    self.ledger.begin(Vec::new(), ctx);
                }
                LedgerEvent::Opened => ctx.opened(Ok(())),
                LedgerEvent::Refused(error) => ctx.opened(Err(error)),
                LedgerEvent::Written => {
                    while let Some(request) = self.ledger.next_written() {
                        ctx.finish(request.id, Ok(()));
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        self.ledger.commit(ctx);
    }
}

impl Layer for DataToy {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        self.request = Some(request);
        for port in [Port(0), Port(1)] {
            self.in_flight += 1;
            ctx.issue(Issue {
                port,
                operation: Operation::WRITE,
                extent: Extent::new(DATA, BLOCKS),
                buffer: request.buffer,
                cause: Cause::Host,
                tag: Tag(0),
            });
        }
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        if !self.ledger.complete(completion, ctx) {
            self.in_flight -= 1;
            if self.in_flight == 0 {
                let request = self.request.expect("a request");
                let data = WrittenData { place: Extent::new(DATA, BLOCKS), buffer: request.buffer };
                self.ledger.record_write(1, b"", data, ctx);
                let _ = self.ledger.answer_when_written(request);
            }
        }
        self.end_event(ctx);
    }

    fn open(&mut self, start: Start, ctx: &mut Context<'_>) {
        self.ledger.open(start, 0, ctx);
        self.end_event(ctx);
    }
}

struct OneWrite(u32);

impl Frontend for OneWrite {
    fn next_arrival(&self) -> Option<Instant> {
        (self.0 == 0).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        if self.0 > 0 {
            return None;
        }
        self.0 = 1;
        let buffer = buffers.allocate(BLOCKS);
        let bytes = buffers.bytes_mut(buffer).expect("buffers of bytes");
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = (at / 7) as u8;
        }
        Some(Arrival {
            tag: Tag(0),
            operation: Operation::WRITE,
            extent: Extent::new(0, BLOCKS),
            buffer,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        assert_eq!(completion.result, Ok(()));
        self.0 = 2;
    }

    fn finished(&self) -> bool {
        self.0 == 2
    }
}

fn engine(
    medium: &Rc<RefCell<ByteMedium>>,
    missing: Option<u16>,
) -> (Engine, Rc<RefCell<Vec<Replayed>>>) {
    let replayed = Rc::new(RefCell::new(Vec::new()));
    let mut builder = StackBuilder::new(1);
    let geometry = Geometry::plain(BlockCount(DATA + BLOCKS), Media::SolidState);
    let nodes = [0, 1].map(|_| builder.disk(geometry.clone()));
    let copies = [settings(0), settings(1)];
    let toy = DataToy {
        ledger: Ledger::mirrored(&copies, DurabilitySettings::default(), &[]),
        request: None,
        in_flight: 0,
        replayed: Rc::clone(&replayed),
    };
    let above = Geometry::plain(BlockCount(BLOCKS), Media::SolidState);
    let top = builder.layer(Box::new(toy), above, &nodes);
    let mut stack = builder.build(top);
    if let Some(disk) = missing {
        stack.lose_disk(DiskId(disk));
    }
    let disk =
        |base| -> Box<dyn Disk> { Box::new(ByteDisk::at(base, DATA + BLOCKS, medium, 1, 0)) };
    let engine = Engine {
        stack,
        disks: vec![disk(0), disk(SECOND)],
        buffers: Buffers::new(ContentKind::Bytes),
        in_flight_max: 4,
    };
    (engine, replayed)
}

/// Which blocks of the record are said to be there.
fn intact(image: &Image, unreadable: &[u64], missing: Option<u16>) -> Vec<bool> {
    let medium = ByteMedium {
        image: image.clone(),
        unreadable: unreadable.iter().copied().collect(),
        ..ByteMedium::default()
    };
    let (mut engine, replayed) = engine(&Rc::new(RefCell::new(medium)), missing);
    let mut clock = JumpingClock::default();
    let opened = engine.open(&mut clock, Start::Recover(Some(Uuid([1; 16]))));
    opened.expect("opens");
    assert_eq!(engine.buffers.allocated(), 0);
    let replayed = replayed.borrow();
    (0..BLOCKS as usize).map(|block| replayed[0].intact.block(block)).collect()
}

#[test]
fn data_that_one_port_has_is_there() {
    let medium = Rc::default();
    let (mut engine, _) = engine(&medium, None);
    let mut clock = JumpingClock::default();
    let format = Start::Format(Uuid([1; 16]));
    engine.open(&mut clock, format).expect("a format");
    engine.run(&mut clock, &mut OneWrite(0), &mut |_, _| {});
    let whole = medium.borrow().image.clone();
    let without = |blocks: &[u64]| {
        let mut image = whole.clone();
        image.retain(|at, _| !blocks.contains(at));
        image
    };
    let all = vec![true; 4];
    assert_eq!(intact(&whole, &[], None), all);
    let first_lacks = without(&[DATA, DATA + 2]);
    assert_eq!(intact(&first_lacks, &[], None), all);
    assert_eq!(intact(&first_lacks, &[], Some(0)), all);
    assert_eq!(intact(&first_lacks, &[], Some(1)), [false, true, false, true]);
    let both_lack = without(&[DATA, DATA + 2, SECOND + DATA + 1, SECOND + DATA + 2]);
    assert_eq!(intact(&both_lack, &[], None), [true, true, false, true]);
    // A block that cannot be read says nothing of the others.
    let second_lacks = without(&[SECOND + DATA + 1]);
    assert_eq!(intact(&second_lacks, &[DATA], None), all);
    assert_eq!(intact(&second_lacks, &[DATA + 1], None), [true, false, true, true]);
}
