//! A controller that holds requests back, so that the drive below may clean.

use super::ports::{PortNodes, one};
use super::reported::Rows;
use super::{
    Asked, Below, Body, Kind, Known, Node, Offer, OnDisk, Part, Planned, Reported, TimeKey, World,
    wrong,
};
use crate::config::ConfigError;
use crate::measured::Measured;
use imbrex_core::counters::{Group, IDLE_CONTROL, ZONES_ASKED};
use imbrex_core::disk::Geometry;
use imbrex_core::extent::Extent;
use imbrex_core::idle_control::{
    Decision, DecisionLog, DecisionSettings, GhostEvent, GhostSettings, IdleControl,
    IdleControlSettings, IdlePolicy, IdlerPolicy, IdlerSettings, OnFlush, PolicyName, Regime,
    ShareRule, ShareSettings, TakenSpeed, Told,
};
use imbrex_core::units::{BLOCK_BYTES, BlockCount, Duration, Instant};
use imbrex_core::words::Words;
use imbrex_drives::keys;
use imbrex_drives::quantity::Size;
use imbrex_drives::{AnyWord, EntryLimit, IdleAfter, Word};
use imbrex_report::{Cell, Column, TableOfKind};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::rc::Rc;

keys! {
    /// A controller that holds requests back, so that the drive below may clean.
    pub struct IdleControlConfig {
        /// Name of the node.
        name: String => "any";
        /// The drive, or the translation over it.
        below: String => "a translation";
        /// Who decides how long the drive is left idle.
        policy: Word<PolicyName> => r#"`"none"`: requests pass; `"at-ic"`: after a time of work, a time of nothing; `"idler"`: as the media cache fills; `"sized"`: the shortest idle periods that are enough; `"throttle"`: by how much of the media cache is left"#;
        /// With `at-ic`: seconds of work, and idle seconds after them.
        #[serde(skip_serializing_if = "Option::is_none")]
        at_ic: Option<[f64; 2]> => "two numbers of seconds, above 0 and at most 3600", "needed with `at-ic`";
        /// With `idler`, `sized` and `throttle`: the share of the media cache in use below which the drive is left alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        u_low: Option<f64> => 0.0..=1.0, "0.1";
        /// With `idler`: the share above which it must be cleaned.
        #[serde(skip_serializing_if = "Option::is_none")]
        u_high: Option<f64> => 0.0..=1.0, "0.8";
        /// The shortest idle period, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        l_min_s: Option<f64> => 0.001..=3600.0, "0.3";
        /// The longest.
        #[serde(skip_serializing_if = "Option::is_none")]
        l_max_s: Option<f64> => 0.001..=3600.0, "2.0";
        /// With `idler`: by how much one is longer or shorter than the one before, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        l_step_s: Option<f64> => 0.001..=3600.0, "0.1";
        /// With `sized` and `throttle`: the share of all time that the drive is left idle for at most.
        #[serde(skip_serializing_if = "Option::is_none")]
        hold_share: Option<f64> => 0.01..=0.9, "0.3";
        /// Requests that are looked at for a decision.
        #[serde(skip_serializing_if = "Option::is_none")]
        samples: Option<u64> => 2..=10_000, "10";
        /// What the speed at which the media cache fills is compared with its cleaning as: that of all the time, or of the time
        /// in which requests were not held.
        #[serde(skip_serializing_if = "Option::is_none")]
        vm: Option<Word<TakenSpeed>> => AnyWord, r#"`"of-all-time"`"#;
        /// How often the drive is asked for its zones, and the speed of its cleaning is measured, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        report_zones_every_s: Option<f64> => 0.1..=86_400.0, "600";
        /// How full the media cache of a used drive is taken to be at the start.
        #[serde(skip_serializing_if = "Option::is_none")]
        u_start: Option<f64> => 0.0..=1.0, "0";
        /// Room of the media cache.
        #[serde(skip_serializing_if = "Option::is_none")]
        media_cache: Option<Size> => "a size of 4 KiB or more", "that of the drive";
        /// Entries of its map.
        #[serde(skip_serializing_if = "Option::is_none")]
        entries: Option<EntryLimit> => r#"a whole number from 1 to 2^40, `"unlimited"`"#, "those of the drive";
        /// Of a drive that reports no zones: how long it is idle before it cleans, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger_s: Option<f64> => 0.0..=3600.0, "`idle_after` of the drive, or 0.25";
        /// And how long it takes for a zone, in seconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        zone_clean_s: Option<f64> => 0.001..=3600.0, "`rewrite_overhead` of the drive and three times what it takes for a band of the mean length";
        /// What a flush does that comes while requests are held.
        #[serde(skip_serializing_if = "Option::is_none")]
        on_flush: Option<Word<OnFlush>> => r#"`"end-idle"`: everything goes on, in order; `"hold"`: it is held too"#, r#"`"end-idle"`"#;
        /// Nothing is held for longer, in seconds, however long the drive takes to become idle.
        #[serde(skip_serializing_if = "Option::is_none")]
        hold_max_s: Option<f64> => 0.001..=3600.0, "10";
        /// Whether each decision and each change of the books stands in the report.
        #[serde(skip_serializing_if = "Option::is_none")]
        log: Option<bool> => "`true`, `false`", "`false`";
    }
}

/// What a drive waits where nothing says it: 250 ms (Idler, IEEE TC 2020, table 1).
const TRIGGER: Duration = Duration::from_ms(250);
/// What the drive is left idle for at most where nothing says it.
const HOLD_SHARE: f64 = 0.3;
/// Blocks of what is taken for a zone where the drive has neither zones nor bands: 256 MiB.
const ZONE_BLOCKS: BlockCount = BlockCount(65_536);

fn seconds(seconds: f64) -> Duration {
    Duration((seconds * 1e9).round() as u64)
}

impl IdleControlConfig {
    /// Finds a key that does nothing under the policy.
    fn check_keys(&self) -> Result<(), ConfigError> {
        // Keys that are absent are not in the table; `log = false` is as if it were.
        let stated = toml::Table::try_from(self).expect("a node is a table");
        let policy = self.policy.0;
        let foreign = stated.iter().find_map(|(key, value)| {
            let others = policies_of(key).filter(|_| value.as_bool() != Some(false))?;
            (!others.contains(&policy)).then_some((key, others))
        });
        let Some((key, others)) = foreign else {
            return Ok(());
        };
        let others: Vec<_> = others.iter().map(|it| format!("\"{}\"", it.word())).collect();
        let words = format!(
            "{key} with policy = \"{}\"; accepted: with {}",
            policy.word(),
            others.join(" or ")
        );
        Err(wrong(&self.name, &words))
    }

    /// Finds values that cannot be together.
    fn check_values(&self) -> Result<(), ConfigError> {
        let refused = |words: String| Err(wrong(&self.name, &words));
        if self.policy.0 == PolicyName::AtIc {
            let can_be = |it: &f64| *it > 0.0 && *it <= 3600.0;
            let accepted = "accepted: two numbers of seconds above 0 and at most 3600, of work and of idle time, such as [5, 2]";
            match self.at_ic {
                None => return refused(format!("policy = \"at-ic\" needs at_ic; {accepted}")),
                Some(pair) if !pair.iter().all(can_be) => {
                    return refused(format!("at_ic = [{}, {}]; {accepted}", pair[0], pair[1]));
                }
                Some(_) => {}
            }
        }
        let IdlerSettings { u_low, u_high, l_min, l_max, .. } = self.decision();
        if u_low >= u_high {
            return refused(format!(
                "u_low = {u_low} and u_high = {u_high}; accepted: u_low below u_high"
            ));
        }
        if l_min > l_max {
            let [min, max] = [l_min, l_max].map(|it| it.0 as f64 / 1e9);
            return refused(format!(
                "l_min_s = {min} and l_max_s = {max}; accepted: l_min_s up to l_max_s"
            ));
        }
        Ok(())
    }

    /// By what is decided over a drive that waits so long before it cleans.
    fn decides(&self, trigger: Duration) -> DecisionSettings {
        let equations = self.decision();
        let rule = match self.policy.0 {
            PolicyName::Sized => ShareRule::Sized,
            PolicyName::Throttle => ShareRule::Throttle,
            _ => return DecisionSettings::Equations(equations),
        };
        let IdlerSettings { u_low, l_min, l_max, .. } = equations;
        let hold_share = self.hold_share.unwrap_or(HOLD_SHARE);
        DecisionSettings::Share(ShareSettings { rule, u_low, l_min, l_max, hold_share, trigger })
    }

    fn decision(&self) -> IdlerSettings {
        let usual = IdlerSettings::default();
        let or = |stated: Option<f64>, usual| stated.map_or(usual, seconds);
        IdlerSettings {
            u_low: self.u_low.unwrap_or(usual.u_low),
            u_high: self.u_high.unwrap_or(usual.u_high),
            l_min: or(self.l_min_s, usual.l_min),
            l_max: or(self.l_max_s, usual.l_max),
            l_step: or(self.l_step_s, usual.l_step),
        }
    }

    /// What is known of the drive whose translation stands below.
    fn of_drive(&self, world: &World<'_>) -> OfDrive {
        let mut name = &*self.below;
        while !world.drives.contains_key(name) {
            let below = world.config.node(name).and_then(|node| node.below().pop());
            let Some(below) = below else {
                return OfDrive { trigger: TRIGGER, overhead: Duration::ZERO, block_ns: 0 };
            };
            name = below;
        }
        let model = &world.drives[name].model;
        let translation = model.translation.as_ref();
        let idle_after = translation.and_then(|it| it.idle_after);
        OfDrive {
            trigger: match idle_after {
                Some(IdleAfter::After(after)) => after.0,
                _ => TRIGGER,
            },
            overhead: translation
                .and_then(|it| it.rewrite_overhead)
                .map_or(Duration::ZERO, |overhead| overhead.0),
            block_ns: model.slowest_block_ns(),
        }
    }
}

/// What a drive file says of cleaning.
#[derive(Clone, Copy)]
struct OfDrive {
    trigger: Duration,
    overhead: Duration,
    /// What a block takes on the innermost track.
    block_ns: u64,
}

/// The policies that have a key; nothing where all do.
fn policies_of(key: &str) -> Option<&'static [PolicyName]> {
    match key {
        "u_high" | "l_step_s" => Some(&[PolicyName::Idler]),
        "hold_share" => Some(&[PolicyName::Sized, PolicyName::Throttle]),
        "u_low"
        | "l_min_s"
        | "l_max_s"
        | "samples"
        | "vm"
        | "report_zones_every_s"
        | "u_start"
        | "media_cache"
        | "entries"
        | "trigger_s"
        | "zone_clean_s"
        | "log" => Some(&[PolicyName::Idler, PolicyName::Sized, PolicyName::Throttle]),
        "at_ic" => Some(&[PolicyName::AtIc]),
        "on_flush" | "hold_max_s" => {
            Some(&[PolicyName::AtIc, PolicyName::Idler, PolicyName::Sized, PolicyName::Throttle])
        }
        _ => None,
    }
}

impl Kind for IdleControlConfig {
    const NAME: &'static str = "idle-control";
    const TABLES: &'static [TableOfKind] = &[DECISIONS, GHOST];
}

impl Node for IdleControlConfig {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> Vec<PortNodes<'_>> {
        vec![PortNodes { key: one("below"), nodes: vec![&self.below] }]
    }

    fn is_clear(&self) -> bool {
        true
    }

    fn owner_of(&self, key: &str) -> Option<&'static str> {
        let others = policies_of(key)?;
        (!others.contains(&self.policy.0)).then(|| others[0].word())
    }

    fn room(&self, world: &World<'_>, scale: u64) -> Result<BlockCount, ConfigError> {
        world.room(&self.below, scale)
    }

    fn plan(
        &self,
        asked: Asked,
        world: &World<'_>,
    ) -> Result<(Box<dyn Planned>, Vec<Asked>), ConfigError> {
        self.check_keys().and_then(|()| self.check_values())?;
        let of_drive = self.of_drive(world);
        let planned = PlannedControl { config: self.clone(), of_drive, scale: asked.scale };
        Ok((Box::new(planned), vec![asked]))
    }
}

struct PlannedControl {
    config: IdleControlConfig,
    of_drive: OfDrive,
    /// By how much the drive is divided, and with it what is stated of it.
    scale: u64,
}

impl PlannedControl {
    /// What the drive offers, as the books are to know it.
    fn ghost(&self, below: &Geometry) -> Result<GhostSettings, ConfigError> {
        let config = &self.config;
        let Some(log) = below.log else {
            let words = format!(
                "`{}` below it cleans nothing; accepted: a translation with a persistent cache",
                config.below
            );
            return Err(wrong(&config.name, &words));
        };
        let of_no_reports = [
            ("trigger_s", config.trigger_s.is_some()),
            ("zone_clean_s", config.zone_clean_s.is_some()),
        ];
        if below.zones.is_some()
            && let Some((key, _)) = of_no_reports.iter().find(|(_, is_stated)| *is_stated)
        {
            let words = format!(
                "{key} is about a drive that reports no zones, and `{}` below it does; accepted: without it",
                config.below
            );
            return Err(wrong(&config.name, &words));
        }
        let mean_band = below.bands.as_ref().map_or(ZONE_BLOCKS, |bands| {
            BlockCount(bands.blocks().0.div_ceil(u64::from(bands.bands()).max(1)))
        });
        let zone_blocks = below.zones.as_ref().map_or(mean_band, |zones| zones.zone_blocks);
        let OfDrive { trigger, overhead, block_ns } = self.of_drive;
        // *Estimated*: a band is read, written to the scratch band and written home.
        let zone_clean = Duration(overhead.0 + 3 * zone_blocks.0 * block_ns);
        Ok(GhostSettings {
            blocks: config
                .media_cache
                .map_or(log.blocks, |size| BlockCount::from_bytes_floor(size.bytes() / self.scale)),
            entries: match config.entries {
                Some(EntryLimit::Entries(entries)) => Some((entries / self.scale).max(1)),
                Some(EntryLimit::Unlimited) => None,
                None => log.entries,
            },
            device: below.blocks,
            zone_blocks,
            has_reports: below.zones.is_some(),
            used_at_start: config.u_start.unwrap_or(0.0),
            trigger: config.trigger_s.map_or(trigger, seconds),
            zone_clean: config.zone_clean_s.map_or(zone_clean, seconds),
        })
    }

    fn policy(&self, below: &Geometry) -> Result<IdlePolicy, ConfigError> {
        let config = &self.config;
        // Whatever the policy: there must be something to clean.
        let ghost = self.ghost(below)?;
        Ok(match (config.policy.0, config.at_ic) {
            (PolicyName::AtIc, Some([execution, idle])) => {
                IdlePolicy::AtIc { execution: seconds(execution), idle: seconds(idle) }
            }
            (PolicyName::Idler | PolicyName::Sized | PolicyName::Throttle, _) => {
                IdlePolicy::Idler(IdlerPolicy {
                    decision: config.decides(ghost.trigger),
                    samples: config.samples.unwrap_or(10) as u32,
                    taken_speed: Word::or(config.vm, TakenSpeed::OfAllTime),
                    ghost,
                    report_every: config
                        .report_zones_every_s
                        .map_or(Duration::from_ms(600_000), seconds),
                })
            }
            (PolicyName::None | PolicyName::AtIc, _) => IdlePolicy::None,
        })
    }
}

impl Planned for PlannedControl {
    fn depends_on_time(&self) -> Option<TimeKey> {
        Some(TimeKey {
            key: "kind = \"idle-control\"".to_string(),
            does: "holds requests back for some time",
            instead: "a stack without such a node",
        })
    }

    fn conventional(
        &self,
        _: &Known<'_>,
        above: &[Extent],
    ) -> Result<Vec<(usize, Extent)>, ConfigError> {
        Ok(above.iter().map(|part| (0, *part)).collect())
    }

    fn build(&self, _: &Known<'_>, below: &Below<'_>) -> Result<Part, ConfigError> {
        let drive = below.offers[0];
        let config = &self.config;
        let policy = self.policy(&drive.geometry)?;
        let resolved = match &policy {
            IdlePolicy::Idler(policy) => of_ghost(&policy.ghost),
            IdlePolicy::None | IdlePolicy::AtIc { .. } => Map::new(),
        };
        let settings = IdleControlSettings {
            policy,
            on_flush: Word::or(config.on_flush, OnFlush::EndIdle),
            hold_max: config.hold_max_s.map_or(Duration::from_ms(10_000), seconds),
        };
        let control = IdleControl::new(settings, &drive.geometry, &drive.flush_failure);
        let decisions = control.decisions();
        if config.log == Some(true) {
            decisions.watch();
        }
        let on_disk = drive.on_disk.as_ref().map(|it| OnDisk {
            statistics: Rc::clone(&it.statistics),
            start: it.start,
            area_prefix: it.area_prefix.clone(),
        });
        Ok(Part {
            body: Body::Layer(Box::new(control)),
            offer: Offer {
                geometry: drive.geometry.clone(),
                on_disk,
                mean_band: drive.mean_band,
                flush_failure: drive.flush_failure.clone(),
            },
            facts: super::Facts::IdleControl(Facts {
                resolved,
                decisions,
                told: RefCell::default(),
            }),
        })
    }
}

/// What the books take the drive to be.
fn of_ghost(ghost: &GhostSettings) -> Map<String, Value> {
    let GhostSettings { blocks, entries, zone_blocks, trigger, zone_clean, .. } = ghost;
    let mut keys = Map::new();
    keys.insert("media_cache".into(), Size(blocks.bytes()).to_string().into());
    keys.insert("entries".into(), entries.map_or("unlimited".into(), Value::from));
    keys.insert("zone_bytes".into(), (zone_blocks.0 * BLOCK_BYTES).into());
    if !ghost.has_reports {
        keys.insert("trigger_s".into(), (trigger.0 as f64 / 1e9).into());
        keys.insert("zone_clean_s".into(), (zone_clean.0 as f64 / 1e9).into());
    }
    keys
}

/// What a report needs to know of a controller.
pub struct Facts {
    resolved: Map<String, Value>,
    decisions: DecisionLog,
    /// What was told so far.
    told: RefCell<Vec<Told>>,
}

impl Facts {
    /// Everything that was told.
    fn told(&self) -> std::cell::Ref<'_, Vec<Told>> {
        self.told.borrow_mut().extend(self.decisions.take());
        self.told.borrow()
    }
}

/// Each decision of a controller.
const DECISIONS: TableOfKind = TableOfKind {
    name: "decisions",
    title: "Decisions of the controller",
    sentence: "What each decision was made of, and how long the drive was left idle then (Idler, equations 1 and 2).",
    over_time: false,
    columns: &[
        Column::new("at_s", "s", "When it fell."),
        Column::new(
            "used",
            "",
            "U: the share of the media cache in use, as the controller has it.",
        ),
        Column::new(
            "between_arrivals_ms",
            "ms",
            "T_r: the mean time between two arrivals of the sample.",
        ),
        Column::new("latency_ms", "ms", "T_lat: the mean latency of the sample."),
        Column::new(
            "taken_per_s",
            "1/s",
            "V_m: the share of the media cache that was taken in a second.",
        ),
        Column::new(
            "cleaned_per_s",
            "1/s",
            "V_c: the share that was cleaned in a second of the last period.",
        ),
        Column::new(
            "regime",
            "",
            "low, mid or high: below both limits, between them, above; share: an idle period of `sized` or `throttle`.",
        ),
        Column::new("idle_s", "s", "L: how long the drive is left idle."),
    ],
};

/// Each change of the books of a controller.
const GHOST: TableOfKind = TableOfKind {
    name: "ghost",
    title: "Books of the controller",
    sentence: "What the controller took the media cache of the drive to gain and to lose, and when a period ended.",
    over_time: false,
    columns: &[
        Column::new("at_s", "s", "When."),
        Column::new("event", "", "taken, freed, or period: the end of one."),
        Column::new("zone", "", "The zone; none of what a used drive held at the start."),
        Column::new("bytes", "bytes", "Its bytes in the media cache, that came or went."),
        Column::new("entries", "", "Its entries."),
        Column::new("used", "", "U at the end of a period."),
    ],
};

fn row_of_decision(decision: &Decision, measured: Measured) -> Vec<Cell> {
    let Decision { at, observed, regime, idle } = decision;
    let ms = |duration: Duration| Cell::Number(duration.0 as f64 / 1e6);
    let regime = match regime {
        Regime::Low => "low",
        Regime::Mid => "mid",
        Regime::High => "high",
        Regime::Share => "share",
    };
    vec![
        Cell::Number(measured.seconds(*at)),
        Cell::Number(observed.used),
        ms(observed.between_arrivals),
        ms(observed.latency),
        Cell::Number(observed.taken_per_s),
        Cell::Number(observed.cleaned_per_s),
        Cell::Text(regime.into()),
        Cell::Number(idle.0 as f64 / 1e9),
    ]
}

fn row_of_event(at_s: f64, event: &GhostEvent) -> Vec<Cell> {
    let (word, zone, blocks, entries) = match *event {
        GhostEvent::Taken { zone, blocks, entries } => ("taken", Some(zone), blocks, entries),
        GhostEvent::Freed { zone, blocks, entries } => ("freed", zone, blocks, entries),
    };
    vec![
        Cell::Number(at_s),
        Cell::Text(word.into()),
        zone.map_or(Cell::Absent, |zone| Cell::Count(u64::from(zone))),
        Cell::Count(blocks * BLOCK_BYTES),
        Cell::Count(entries),
        Cell::Absent,
    ]
}

impl Reported for Facts {
    fn groups(&self) -> Vec<Group> {
        vec![IDLE_CONTROL, ZONES_ASKED]
    }

    fn resolved(&self) -> Map<String, Value> {
        self.resolved.clone()
    }

    fn restart(&self, _from: Instant) {
        self.decisions.take();
        self.told.borrow_mut().clear();
    }

    fn tables(&self, measured: Measured) -> Vec<(TableOfKind, Rows)> {
        let told = self.told();
        if told.is_empty() {
            return vec![];
        }
        let decisions = told.iter().filter_map(|told| match told {
            Told::Decision(decision) => Some(row_of_decision(decision, measured)),
            Told::Ghost { .. } | Told::Period { .. } => None,
        });
        let events = told.iter().filter_map(|told| match told {
            Told::Decision(_) => None,
            Told::Ghost { at, event } => Some(row_of_event(measured.seconds(*at), event)),
            Told::Period { at, used } => Some(vec![
                Cell::Number(measured.seconds(*at)),
                Cell::Text("period".into()),
                Cell::Absent,
                Cell::Absent,
                Cell::Absent,
                Cell::Number(*used),
            ]),
        });
        vec![(DECISIONS, decisions.collect()), (GHOST, events.collect())]
    }
}

#[cfg(test)]
mod tests {
    use crate::{BuildOptions, Plan, StackConfig};
    use imbrex_core::buffer::ContentKind;

    #[test]
    fn a_controller_needs_something_below_that_cleans() {
        let text = "name = 'idle'\n[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'tiny-cmr'\n\
                    [[node]]\nname = 'controller'\nkind = 'idle-control'\nbelow = 'disk'\npolicy = 'none'\n";
        let config = StackConfig::from_text("file.toml", text, &[]).expect("a stack");
        let plan = Plan::new(&config, &BuildOptions::simulate(1)).expect("a plan");
        let error = plan.build(None, None, ContentKind::Counted).map(|_| ()).unwrap_err();
        let words = "node `controller`: `disk` below it cleans nothing; accepted: a translation";
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn keys_of_another_policy_are_refused_in_a_file() {
        for (keys, words) in [
            (
                "policy = 'none'\nsamples = 5",
                "samples with policy = \"none\"; accepted: with \"idler\"",
            ),
            (
                "policy = 'none'\nhold_max_s = 5.0",
                "hold_max_s with policy = \"none\"; accepted: with \"at-ic\" or \"idler\"",
            ),
            (
                "policy = 'idler'\nat_ic = [5, 2]",
                "at_ic with policy = \"idler\"; accepted: with \"at-ic\"",
            ),
        ] {
            let text = format!(
                "name = 'idle'\n[[node]]\nname = 'disk'\nkind = 'disk'\ndrive = 'st8000as0022'\n\
                 [[node]]\nname = 'translation'\nkind = 'persistent-cache'\nbelow = 'disk'\n\
                 [[node]]\nname = 'controller'\nkind = 'idle-control'\nbelow = 'translation'\n{keys}\n"
            );
            let config = StackConfig::from_text("file.toml", &text, &[]).expect("a stack");
            let error = Plan::new(&config, &BuildOptions::simulate(1)).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
