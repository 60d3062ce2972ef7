//! A host of zoned disks in virtual time: streams of operations, each at its own queue depth.

use crate::fio::Session;
use crate::simulation::VirtualClock;
use imbrex_core::buffer::{BufferSlice, Buffers, ContentKind};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::Arrival;
use imbrex_core::units::{BLOCK_BYTES, Duration, Instant};
use imbrex_core::zone::{ZoneGeometry, ZoneId};
use imbrex_stack::{BuildOptions, Built, ConfigError, NodeRole, Plan, Setting, StackConfig};
use std::sync::Arc;

const MIB: f64 = (1 << 20) as f64;

/// A zoned drive under measurement.
pub struct ZonedDrive {
    engine: Engine,
    clock: VirtualClock,
    /// Its zones.
    pub zones: Arc<ZoneGeometry>,
    now: Instant,
}

/// What a stream does next.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// How long it waits before, from the answer that lets it go on.
    pub pause: Duration,
    /// What to do.
    pub operation: Operation,
    /// Where.
    pub extent: Extent,
}

impl Step {
    /// An operation without a pause.
    pub fn new(operation: Operation, extent: Extent) -> Step {
        Step { pause: Duration::ZERO, operation, extent }
    }
}

/// Operations that are issued as earlier ones of the same stream are answered.
pub struct Stream<'a> {
    /// Operations in flight at most.
    pub depth: usize,
    /// In order.
    pub steps: Box<dyn Iterator<Item = Step> + 'a>,
}

impl<'a> Stream<'a> {
    /// A stream with so many operations in flight at most.
    pub fn new(depth: usize, steps: impl Iterator<Item = Step> + 'a) -> Stream<'a> {
        Stream { depth, steps: Box::new(steps) }
    }
}

/// How long the operations of a run took.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Response times in nanoseconds, in order of completion.
    pub ns: Vec<u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// From the first arrival to the last answer.
    pub took: Duration,
}

impl Latencies {
    /// The response time that the share `p` of all operations does not exceed, in milliseconds.
    pub fn percentile_ms(&self, p: f64) -> f64 {
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        let rank = (p * sorted.len() as f64).ceil() as usize;
        let index = rank.clamp(1, sorted.len().max(1)) - 1;
        sorted.get(index).map_or(0.0, |ns| *ns as f64 / 1e6)
    }

    /// The mean response time in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.ns.iter().sum::<u64>() as f64 / self.ns.len().max(1) as f64 / 1e6
    }

    /// Bytes over time, in MiB/s.
    pub fn mib_per_s(&self) -> f64 {
        self.bytes as f64 / MIB / self.took.as_seconds()
    }

    /// Operations over time.
    pub fn per_s(&self) -> f64 {
        self.ns.len() as f64 / self.took.as_seconds()
    }
}

impl ZonedDrive {
    /// A drive of the library, or of a file, as it left the factory.
    ///
    /// # Errors
    /// When there is no such drive, a setting is wrong, or the drive has no zones.
    pub fn open(
        drive: &str,
        settings: &[Setting],
        options: &BuildOptions,
        contents: ContentKind,
    ) -> Result<ZonedDrive, ConfigError> {
        let config = StackConfig::of_drive(drive, settings)?;
        ZonedDrive::of_stack(&config, options, contents)
    }

    /// The zoned drive that a stack is.
    ///
    /// # Errors
    /// When the stack cannot be built, or has no zones.
    pub fn of_stack(
        config: &StackConfig,
        options: &BuildOptions,
        contents: ContentKind,
    ) -> Result<ZonedDrive, ConfigError> {
        let Built { stack, disks, describe } =
            Plan::new(config, options)?.build(None, None, contents)?;
        let zones = stack.geometry().zones.clone();
        let is_zoned = describe.has(NodeRole::Zones) || describe.has(NodeRole::Translation);
        let Some(zones) = zones.filter(|_| is_zoned) else {
            let reason = format!("`{}` has no zones", config.name);
            return Err(ConfigError::words(reason));
        };
        Ok(ZonedDrive {
            engine: Engine {
                stack,
                disks,
                buffers: Buffers::new(contents),
                in_flight_max: u32::MAX,
            },
            clock: VirtualClock::default(),
            zones,
            now: Instant::ZERO,
        })
    }

    /// The blocks of a zone.
    pub fn zone(&self, zone: u32) -> Extent {
        self.zones.extent_of(ZoneId(zone))
    }

    /// Runs streams until all have ended and the drive is quiet.
    ///
    /// # Errors
    /// The first error that the drive answered with.
    pub fn run(&mut self, streams: Vec<Stream<'_>>) -> Result<Latencies, IoError> {
        self.run_observed(streams, &mut |_| {})
    }

    /// Like [`run`](Self::run); `answered` sees the bytes that the buffer of each operation holds
    /// when it is answered, none where no bytes are kept.
    ///
    /// # Errors
    /// The first error that the drive answered with.
    pub fn run_observed(
        &mut self,
        streams: Vec<Stream<'_>>,
        answered: &mut dyn FnMut(&[u8]),
    ) -> Result<Latencies, IoError> {
        let begun = self.now;
        let mut host = Host::new(begun, streams, answered);
        self.engine.run(&mut self.clock, &mut host, &mut |now, _| {
            self.now = now;
        });
        let Host { result, mut latencies, last, .. } = host;
        latencies.took = last.since(begun);
        result.map(|()| latencies)
    }
}

/// Runs streams on a session until every operation has been answered.
///
/// # Errors
/// The first error that the device answered with.
pub(super) fn run_on(
    session: &mut Session,
    streams: Vec<Stream<'_>>,
) -> Result<Latencies, IoError> {
    let begun = session.now();
    let mut unseen = |_: &[u8]| {};
    let mut host = Host::new(begun, streams, &mut unseen);
    session.run_frontend(&mut host);
    let took = host.last.since(begun);
    let latencies = Latencies { took, ..host.latencies };
    host.result.map(|()| latencies)
}

struct InFlight {
    arrived: Instant,
    stream: usize,
    buffer: BufferSlice,
    bytes: u64,
}

struct Host<'a> {
    streams: Vec<Stream<'a>>,
    /// What is to be issued, with its stream and when.
    due: Vec<(Instant, usize, Step)>,
    in_flight: Vec<Option<InFlight>>,
    last: Instant,
    latencies: Latencies,
    result: Result<(), IoError>,
    answered: &'a mut dyn FnMut(&[u8]),
}

impl<'a> Host<'a> {
    fn new(
        begins: Instant,
        streams: Vec<Stream<'a>>,
        answered: &'a mut dyn FnMut(&[u8]),
    ) -> Host<'a> {
        let mut host = Host {
            streams,
            due: Vec::new(),
            in_flight: Vec::new(),
            last: begins,
            latencies: Latencies::default(),
            result: Ok(()),
            answered,
        };
        for stream in 0..host.streams.len() {
            for _ in 0..host.streams[stream].depth {
                host.go_on(begins, stream);
            }
        }
        host
    }

    /// Takes the next step of a stream.
    fn go_on(&mut self, now: Instant, stream: usize) {
        if let Some(step) = self.streams[stream].steps.next() {
            self.due.push((now + step.pause, stream, step));
        }
    }
}

impl Frontend for Host<'_> {
    fn next_arrival(&self) -> Option<Instant> {
        self.due.iter().map(|(at, ..)| *at).min()
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<Arrival> {
        let next = self.due.iter().position(|(at, ..)| *at <= now)?;
        let (_, stream, step) = self.due.remove(next);
        let buffer = match step.operation.has_data() {
            true => buffers.allocate(step.extent.blocks.0),
            false => BufferSlice::EMPTY,
        };
        let in_flight = Some(InFlight {
            arrived: now,
            stream,
            buffer,
            bytes: u64::from(buffer.blocks) * BLOCK_BYTES,
        });
        let vacant = self.in_flight.iter().position(Option::is_none);
        let slot = vacant.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        self.in_flight[slot] = in_flight;
        Some(Arrival {
            tag: Tag(slot as u64),
            operation: step.operation,
            extent: step.extent,
            buffer,
        })
    }

    fn reply(&mut self, now: Instant, completion: Completion, buffers: &mut Buffers) {
        let slot = completion.tag.0 as usize;
        let request = self.in_flight[slot].take().expect("a request in flight");
        self.latencies.ns.push(now.since(request.arrived).0);
        self.latencies.bytes += request.bytes;
        self.result = self.result.and(completion.result);
        (self.answered)(buffers.bytes(request.buffer).unwrap_or(&[]));
        buffers.release(request.buffer);
        self.last = now;
        self.go_on(now, request.stream);
    }

    fn finished(&self) -> bool {
        self.due.is_empty() && self.in_flight.iter().all(Option::is_none)
    }
}
