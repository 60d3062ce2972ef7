//! What would make a run clean bands in which none was cleaned.

use super::areas::Footprint;
use super::config::StackConfig;
use super::describe::Describe;
use super::kinds::LogUse;

use super::options::BuildOptions;
use super::plan::Plan;
use super::setting::Setting;
use imbrex_core::buffer::ContentKind;
use imbrex_core::counters::Counter;
use imbrex_core::stack::Stack;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_drives::quantity::{Size, SizeOrShare};
use imbrex_drives::shell_word;
use imbrex_report::NoCleaning;

/// By how much the live blocks must exceed the log, so that there is more than one clean to see.
const OVERFILL: u64 = 2;

/// A run that is over, and what can be changed of it.
#[derive(Clone, Copy, Debug)]
pub struct PastRun<'a> {
    /// The stack.
    pub config: &'a StackConfig,
    /// What it was built for.
    pub options: &'a BuildOptions,
    /// What its shares were shares of.
    pub footprint: Option<Footprint>,
    /// Whether the host wrote anything.
    pub host_wrote: bool,
    /// The end of the highest request, in bytes.
    pub end_bytes: u64,
    /// The option of the command that divides the drives, if it has one.
    pub scale_option: Option<&'a str>,
}

impl PastRun<'_> {
    /// What must be said when the host wrote and no band was cleaned; nothing otherwise.
    pub fn no_cleaning(&self, describe: &Describe, stack: &Stack) -> Option<NoCleaning> {
        let mut no_cleaning = describe.no_cleaning(stack, self.host_wrote)?;
        no_cleaning.would_show = self.option_that_cleans(&describe.log_use(stack)?);
        Some(no_cleaning)
    }

    /// The option with which the blocks that are live in the log would be more than it holds. A
    /// smaller drive comes first: its log keeps its proportions.
    fn option_that_cleans(&self, log: &LogUse) -> Option<String> {
        if log.live_blocks == 0 {
            return None;
        }
        let mut nodes = self.config.node.iter();
        let (node, (key, size)) =
            nodes.find_map(|node| Some((node.name(), node.node().log_size()?)))?;
        let is_share = matches!(size, Some(SizeOrShare::Share { .. }));
        if let Some(option) = self.scale_option.filter(|_| !is_share) {
            let divisor = (OVERFILL * log.blocks).div_ceil(log.live_blocks).min(
                log.entries_max.map_or(u64::MAX, |entries_max| {
                    (OVERFILL * entries_max).div_ceil(log.entries.max(1))
                }),
            );
            let mut options = self.options.clone();
            options.scale = divisor.checked_next_power_of_two()?.checked_mul(options.scale)?;
            if self.fits(self.config, &options) {
                return Some(format!("{option} {}", options.scale));
            }
        }
        let blocks = log.live_blocks / OVERFILL;
        let bytes = 1 << (blocks.max(1) * BLOCK_BYTES).ilog2();
        let size = Size(bytes).to_string().replace(' ', "");
        let setting = format!("{node}.{key}={size}");
        let config = self.config.clone();
        let config = config.with("", &[Setting::parse(&setting).ok()?]).ok()?;
        self.fits(&config, self.options).then(|| format!("--set {}", shell_word(&setting)))
    }

    /// True when such a stack can be built, and holds the addresses that were used.
    fn fits(&self, config: &StackConfig, options: &BuildOptions) -> bool {
        let Ok(plan) = Plan::new(config, options) else {
            return false;
        };
        let built = plan.build(self.footprint, None, ContentKind::Counted);
        self.end_bytes <= plan.blocks().bytes() && built.is_ok()
    }
}

impl Describe {
    /// What must be said when the host wrote and no band was cleaned, without what would show it.
    pub fn no_cleaning(&self, stack: &Stack, host_wrote: bool) -> Option<NoCleaning> {
        let log = self.log_use(stack)?;
        let counts = stack.counts(self.translation()?);
        if counts.counter(Counter::BandsRewritten) > 0 || !host_wrote {
            return None;
        }
        let share = |used: u64, limit: u64| used as f64 / limit.max(1) as f64;
        let of_entries = log.entries_max.map_or(0.0, |max| share(log.entries, max));
        Some(NoCleaning {
            log_fill: share(log.used_blocks, log.blocks).max(of_entries),
            log_went_round: counts.counter(Counter::PersistentCacheAppendedBlocks) > log.blocks,
            would_show: None,
        })
    }
}
