//! The suite must be able to fail: it rejects layers that are wrong, each for its own reason, and
//! notices planted bugs.

use super::disk::{Fault, How};
use super::kinds::{BufferBound, Kind, made};
use super::suite::{Case, EVERYDAY, When, run, with_failures, without_failures};
use imbrex_core::buffer::BufferSlice;
use imbrex_core::disk::{Geometry, Media, TrackTable};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::layer::{Context, Issue, Layer, Port};
use imbrex_core::operation::{Cause, Completion, Operation, Request, Tag};
use imbrex_core::planted::PlantedBug;
use imbrex_core::units::BlockCount;
use std::collections::VecDeque;
use std::sync::Arc;

const BLOCKS: u64 = 60;
const TRACK: u64 = 4;
const OVERLAP_TRACKS: u64 = 2;

/// What is wrong with a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    ForgetsOverlappedTracks,
    LosesWrites,
    Misplaces,
    AnswersTwice,
    NeverAnswersFlushes,
    KeepsABuffer,
    WritesOverlapping,
    BuffersWithoutBound,
    TakesFailuresForSuccess,
    TakesZoneCommands,
}

/// Everything from the first block of a write to the end of the device is read, merged with what
/// is written, and written again, one request after another. So no track that is needed is left
/// destroyed.
struct Rewriting {
    mistake: Mistake,
    waiting: VecDeque<(Request, BufferSlice)>,
    current: Option<(Request, BufferSlice)>,
    has_read: bool,
    outstanding: u32,
    kept: Option<BufferSlice>,
}

impl Rewriting {
    fn issue(
        &mut self,
        operation: Operation,
        extent: Extent,
        buffer: BufferSlice,
        ctx: &mut Context<'_>,
    ) {
        self.outstanding += 1;
        ctx.issue(Issue {
            port: Port(0),
            operation,
            extent,
            buffer,
            cause: Cause::Host,
            tag: Tag(0),
        });
    }

    /// What is rewritten for a request.
    fn rest(extent: Extent) -> Extent {
        Extent::new(extent.start.0, BLOCKS - extent.start.0)
    }

    fn begin_next(&mut self, ctx: &mut Context<'_>) {
        while self.current.is_none()
            && let Some((request, mut buffer)) = self.waiting.pop_front()
        {
            let extent = request.extent;
            match request.operation {
                Operation::Flush if self.mistake == Mistake::NeverAnswersFlushes => continue,
                Operation::Read | Operation::Flush => {
                    self.issue(request.operation, extent, request.buffer, ctx);
                }
                _ if self.mistake == Mistake::LosesWrites => {
                    ctx.finish(request.id, Ok(()));
                    continue;
                }
                _ => {
                    let rest = Rewriting::rest(extent);
                    if buffer == BufferSlice::EMPTY {
                        buffer = ctx.allocate(rest.blocks);
                    }
                    self.issue(Operation::Read, rest, buffer, ctx);
                }
            }
            self.has_read = request.operation == Operation::Read;
            self.current = Some((request, buffer));
        }
    }

    fn write(&mut self, request: Request, buffer: BufferSlice, ctx: &mut Context<'_>) {
        let (extent, rest) = (request.extent, Rewriting::rest(request.extent));
        let part = buffer.part(0, extent.blocks.0);
        match request.operation {
            Operation::Write { .. } => ctx.copy(request.buffer, part),
            _ => ctx.zero(part),
        }
        match self.mistake {
            Mistake::ForgetsOverlappedTracks => {
                self.issue(Operation::WRITE_DURABLE, extent, part, ctx)
            }
            Mistake::Misplaces => {
                let beside = Extent::new(rest.start.0 + 1, rest.blocks.0);
                self.issue(Operation::WRITE_DURABLE, beside, buffer, ctx);
            }
            Mistake::WritesOverlapping => {
                self.issue(Operation::WRITE_DURABLE, rest, buffer, ctx);
                self.issue(Operation::WRITE_DURABLE, extent, part, ctx);
            }
            _ => self.issue(Operation::WRITE_DURABLE, rest, buffer, ctx),
        }
    }
}

impl Layer for Rewriting {
    fn submit(&mut self, request: Request, ctx: &mut Context<'_>) {
        if request.operation.is_zone_command() && self.mistake != Mistake::TakesZoneCommands {
            return ctx.finish(request.id, Err(IoError::NotPermitted));
        }
        let early = self.mistake == Mistake::BuffersWithoutBound && !request.extent.is_empty();
        let buffer = match early {
            true => ctx.allocate(Rewriting::rest(request.extent).blocks),
            false => BufferSlice::EMPTY,
        };
        self.waiting.push_back((request, buffer));
        self.begin_next(ctx);
    }

    fn complete(&mut self, completion: Completion, ctx: &mut Context<'_>) {
        self.outstanding -= 1;
        if self.outstanding > 0 {
            return;
        }
        let (request, buffer) = self.current.expect("a request under way");
        let mut result = completion.result;
        if self.mistake == Mistake::TakesFailuresForSuccess {
            result = Ok(());
        }
        let changes = !matches!(request.operation, Operation::Read | Operation::Flush);
        if changes && !self.has_read && result.is_ok() {
            self.has_read = true;
            return self.write(request, buffer, ctx);
        }
        self.current = None;
        if self.mistake == Mistake::KeepsABuffer && self.kept.is_none() {
            self.kept = Some(buffer);
        } else {
            ctx.release(buffer);
        }
        ctx.finish(request.id, result);
        if self.mistake == Mistake::AnswersTwice {
            ctx.finish(request.id, result);
        }
        self.begin_next(ctx);
    }
}

fn kind(mistake: Mistake) -> Kind {
    // The last tracks are there to be destroyed.
    let tracks = BLOCKS / TRACK + OVERLAP_TRACKS;
    let tracks = TrackTable::new([(tracks, TRACK)], BlockCount(0), OVERLAP_TRACKS);
    let disk = Geometry {
        tracks: Some(Arc::new(tracks.clone())),
        ..Geometry::plain(BlockCount(tracks.blocks()), Media::Shingled)
    };
    // The buffer that is kept must be noticed for its own sake.
    let kept = if mistake == Mistake::KeepsABuffer { BLOCKS } else { 0 };
    let buffers = BufferBound { blocks: BLOCKS + kept, because: "one request is merged at a time" };
    let kind = Kind::new(vec![disk], false, buffers, move |_| {
        let layer = Rewriting {
            mistake,
            waiting: VecDeque::new(),
            current: None,
            has_read: false,
            outstanding: 0,
            kept: None,
        };
        (layer, Geometry::plain(BlockCount(BLOCKS), Media::Conventional))
    });
    Kind { loses_on_failure: true, ..kind }
}

/// The first rule of the suite that a kind breaks.
fn mistake_of(kind: &Kind, bug: Option<PlantedBug>) -> Result<(), String> {
    without_failures(kind, EVERYDAY, bug)?;
    with_failures(kind, EVERYDAY, When::Serving, bug)?;
    with_failures(kind, EVERYDAY, When::Reopening, bug)?;
    Ok(())
}

#[test]
fn wrong_layers_are_rejected_for_the_right_reason() {
    assert_eq!(mistake_of(&kind(Mistake::None), None), Ok(()));
    let reasons = [
        (Mistake::ForgetsOverlappedTracks, "was destroyed by a write beside it"),
        (Mistake::LosesWrites, "is lost"),
        (Mistake::Misplaces, "is misplaced"),
        (Mistake::AnswersTwice, "a request was answered twice"),
        (Mistake::NeverAnswersFlushes, "waits for something that will never come"),
        (Mistake::KeepsABuffer, "1 buffers were not given back"),
        (Mistake::WritesOverlapping, "is in flight"),
        (Mistake::BuffersWithoutBound, "60 are planned: one request is merged at a time"),
        (Mistake::TakesFailuresForSuccess, "is misplaced"),
        (Mistake::TakesZoneCommands, "Refused(ZoneOpen) was answered with Ok"),
    ];
    for (mistake, reason) in reasons {
        let words = mistake_of(&kind(mistake), None).expect_err("a wrong layer");
        println!("{mistake:?}: {words}");
        assert!(words.contains(reason), "{mistake:?} is rejected for: {words}");
    }
}

type MakeKind = fn() -> Kind;

/// The bugs that must be noticed, with a kind of layer that has each.
const PLANTED: &[(PlantedBug, MakeKind)] = &[
    (PlantedBug::SsdFlushSkipped, made::durable_cache_lru),
    (PlantedBug::SmrFlushSkipped, made::durable_translation),
    (PlantedBug::AckBeforeJournalFlush, made::durable_translation),
    (PlantedBug::FuaAsPlain, made::durable_translation),
    (PlantedBug::EpochBumpUnflushed, made::durable_cache_lru),
    (PlantedBug::RootBeforePages, made::durable_cache_pore_bl),
    (PlantedBug::OldLocationReusedEarly, made::translation_plain),
    (PlantedBug::DirtyDroppedBeforeDestinationFlush, made::cache_lru),
    (PlantedBug::MapBeforeData, made::durable_zone_lru_buffer),
    (PlantedBug::EvictionForgotten, made::durable_zone_lru_buffer),
    (PlantedBug::RemapIgnoresOverwrite, made::translation_plain),
    (PlantedBug::OverlapNotRestored, made::translation_plain),
    (PlantedBug::ScratchCopyNotRead, made::translation_stretches),
    (PlantedBug::BypassOverLiveData, made::durable_translation_bypass),
    (PlantedBug::TrimForgottenOnReplay, made::durable_translation),
    (PlantedBug::BandRewriteWithoutScratch, made::durable_translation),
    (PlantedBug::FillOverWritten, made::memory_buffer_lwa),
    (PlantedBug::FailedDestageDropped, made::memory_buffer_lru_block),
    (PlantedBug::CleanBeforeFlush, made::durable_memory_buffer),
    (PlantedBug::SsdFlushSkipped, made::durable_memory_buffer),
    (PlantedBug::FuaAsPlain, made::durable_memory_buffer),
    (PlantedBug::AckBeforeJournalFlush, made::durable_memory_buffer),
];

/// The power is cut at every operation of a buffer that resets zones: only there shows that the copy of a zone
/// in flash was not durable when its home was gone.
#[test]
fn a_zone_that_is_reset_too_early_is_noticed() {
    let kind = made::durable_zone_lru_buffer_over_zoned_disk();
    let lost = |bug: Option<PlantedBug>| {
        let (mut runs, mut lost) = (0, 0);
        for seed in 0..6 {
            for port in 0..kind.disks.len() {
                // More than there are of any port.
                for after in 0..500 {
                    let fault = Some((When::Serving, Fault { port, after, how: How::PowerCut }));
                    let case = Case { seed, depth: 4, asks: 60, fault, closes: false, bug };
                    let played = run(&kind, case);
                    lost += u64::from(played.is_err());
                    runs += 1;
                    if played.is_ok_and(|seen| seen.operations[port] <= after) {
                        break;
                    }
                }
            }
        }
        println!("{bug:?}: {lost} of {runs} power cuts lose data");
        lost
    };
    assert_eq!(lost(None), 0);
    assert!(lost(Some(PlantedBug::ZoneResetBeforeFlush)) > 0);
}

#[test]
fn planted_bugs_are_noticed() {
    let mut missed = Vec::new();
    for (bug, kind) in PLANTED {
        match mistake_of(&kind(), Some(*bug)) {
            Ok(()) => missed.push(bug.name()),
            Err(words) => println!("{}: {words}", bug.name()),
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
