//! How long work shows itself on standard error: a bar on a terminal, else a line for each piece that has ended.

use super::console::{complain, write_remark};
use crate::args::QuietArgs;
use imbrex_sim::progress::{Event, PARTS, Step};
use imbrex_traces::{ReadOptions, ReadWatch, TraceError, TraceReader};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::IsTerminal;
use std::time::Duration;

/// Before the first piece has ended nobody knows how long one takes.
const AT_FIRST: &str = "  {bar:20} {prefix}, {percent} %  {wide_msg}";
const LATER: &str = "  {bar:20} {prefix}, {percent} %, {eta} left  {wide_msg}";

/// Of a file that is read.
const OF_FILE: &str = "  {bar:20} {bytes} of {total_bytes} read, {percent} %, {eta} left";

/// How often the time that is left is drawn anew.
const DRAWN_EVERY: Duration = Duration::from_millis(500);

/// Tells how far long work has come, until it is dropped.
pub struct Telling {
    how: How,
}

enum How {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl Telling {
    /// On standard error.
    pub fn new(args: QuietArgs) -> Telling {
        let how = match (args.quiet, std::io::stderr().is_terminal()) {
            (true, _) => How::Quiet,
            (false, false) => How::Lines,
            (false, true) => How::Bar(bar()),
        };
        Telling { how }
    }

    /// The same for pieces that are too many and too short for a line each.
    pub fn of_small_pieces(args: QuietArgs) -> Telling {
        let telling = Telling::new(args);
        match telling.how {
            How::Lines => Telling { how: How::Quiet },
            _ => telling,
        }
    }

    /// Opens a trace and tells, on a terminal, how much of its file was read until it is dropped.
    pub fn opened(
        args: QuietArgs,
        path: &str,
        options: ReadOptions,
    ) -> Result<(Telling, TraceReader), TraceError> {
        let (telling, watch) = Telling::of_files(args, &[path.to_string()]);
        let reader = imbrex_traces::open(path, &ReadOptions { watch, ..options })?;
        Ok((telling, reader))
    }

    /// Tells, on a terminal, how much of some files its watch has heard of. Of what is no file nobody knows how
    /// long it is.
    pub fn of_files(args: QuietArgs, paths: &[String]) -> (Telling, Option<ReadWatch>) {
        let telling = Telling::of_small_pieces(args);
        let length = |path: &String| {
            let found = fs::metadata(path).ok().filter(|found| found.is_file());
            found.map(|found| found.len())
        };
        let watch = match (&telling.how, paths.iter().map(length).sum::<Option<u64>>()) {
            (How::Bar(bar), Some(length)) => {
                bar.set_style(style(OF_FILE));
                bar.set_length(length);
                let bar = bar.clone();
                Some(ReadWatch::new(move |bytes| bar.inc(bytes)))
            }
            _ => None,
        };
        (telling, watch)
    }

    /// Tells of the beginning of the work, of a piece that has ended, and on a terminal of parts of one.
    pub fn step(&self, step: &Step<'_>) {
        match (&self.how, step.event) {
            (How::Quiet, _) | (How::Lines, Event::GoesOn) => {}
            (How::Lines, Event::Begins) if step.done == 0 => {}
            (How::Lines, Event::Begins) => write_remark(&format!("  done before: {step}")),
            (How::Lines, Event::Ended(_)) => write_remark(&format!("  done: {step}")),
            (How::Bar(bar), Event::Begins) => {
                bar.set_style(style(AT_FIRST));
                bar.set_position(position(step));
                bar.set_length((step.total * PARTS) as u64);
                bar.set_prefix(format!("{} of {}", step.done, step.total));
                // What was done before took no time.
                bar.reset_eta();
                bar.enable_steady_tick(DRAWN_EVERY);
            }
            // Another thread may have told of a later piece or part already.
            (How::Bar(bar), _) if position(step) < bar.position() => {}
            (How::Bar(bar), event) => {
                bar.set_position(position(step));
                bar.set_style(style(LATER));
                bar.set_prefix(format!("{} of {}", step.done, step.total));
                if let Event::Ended(name) = event {
                    bar.set_message(name.to_string());
                }
            }
        }
    }

    /// Says something that is no error.
    pub fn remark(&self, message: &str) {
        match self.how {
            How::Quiet => {}
            _ => self.beside_the_bar(|| write_remark(message)),
        }
    }

    /// Says what is wrong, to those too who want no progress.
    pub fn complain(&self, message: &str) {
        self.beside_the_bar(|| complain(message));
    }

    fn beside_the_bar(&self, say: impl FnOnce()) {
        match &self.how {
            How::Bar(bar) => bar.suspend(say),
            _ => say(),
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }
}

/// Where the bar stands, in parts of pieces.
fn position(step: &Step<'_>) -> u64 {
    (step.done * PARTS + step.parts) as u64
}

fn bar() -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style(AT_FIRST))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template")
}
