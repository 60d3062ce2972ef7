//! The experiments that come with Imbrex: those of published figures and tables, and its own of RIDE.

use super::experiment::Experiment;
use imbrex_drives::toml_error::nearest;
use imbrex_stack::ConfigError;
use std::path::Path;

/// A figure or table of a paper, or an experiment of Imbrex's own.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The paper, or the policy.
    pub paper: &'static str,
    /// The figure or table.
    pub figure: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($paper:literal: $($figure:literal),* ;)*) => {
        &[$($(Figure {
            paper: $paper,
            figure: $figure,
            text: include_str!(concat!("../../../../experiments/", $paper, "/", $figure, ".toml")),
        },)*)*]
    };
}

const SHIPPED: &[Figure] = shipped![
    "pore": "table1", "fig3-smr", "fig3-cmr", "fig4", "fig6", "fig11", "fig12", "fig13", "fig14", "fig15a-c", "fig15d-f",
        "fig16", "fig16-read-write";
    "ride": "adversary", "log-size", "nearly-fits", "recipes", "recipes-fair", "recipes-write-only";
    "hwsr": "figure-6", "figure-7", "figure-13", "figure-14", "figure-15", "figure-16", "figure-17", "figure-18", "figure-19",
        "figure-20", "table-3", "table-size", "sequential", "crash-cost", "policies", "window", "ring";
    "raid4smr": "figure-5.1", "figure-5.2", "figure-5.3", "figure-5.4", "figure-5.5", "figure-5.7",
        "figure-5.7-packed", "figure-5.7-dedicated", "figure-6.6", "table-6.1",
        "equation-6.1", "equation-6.7", "chain-1", "chain-2", "chain-5", "chain-10", "chain-20", "rates", "raid4-3-and-1",
        "raid4-4-and-1", "movement", "logs", "degraded", "resync-4tb", "rebuild-8tb-conventional", "rebuild-8tb-shingled";
    "headmove": "table-5.1", "table-5.3", "figure-5.1", "figure-5.2", "figure-5.3", "depth", "placement", "placed", "quota", "idle", "sptf",
        "open-loop", "as-recorded";
    "idler": "table-1", "figure-2", "figure-3", "figure-4", "figure-6", "table-2", "table-3", "figure-9", "figure-10", "figure-12",
        "figure-14", "figure-16", "shares", "resume", "ghost", "beyond", "victims",
        "reclaim";
];

impl Figure {
    /// The experiment.
    ///
    /// # Errors
    /// None for one that is shipped, as a test makes sure.
    pub fn experiment(&self) -> Result<Experiment, ConfigError> {
        let file = format!("experiments/{}/{}.toml", self.paper, self.figure);
        Experiment::parse(&file, self.text, Path::new(""))
    }
}

/// The shipped figures of a paper and a figure, or all of them. A figure's number alone stands for
/// all its parts: `fig15` for `fig15a-c` and `fig15d-f`.
///
/// # Errors
/// When there is none; the nearest is suggested.
pub fn figures(paper: Option<&str>, figure: Option<&str>) -> Result<Vec<Figure>, ConfigError> {
    let of_paper: Vec<Figure> = SHIPPED
        .iter()
        .filter(|shipped| paper.is_none_or(|paper| shipped.paper == paper))
        .copied()
        .collect();
    if let (true, Some(paper)) = (of_paper.is_empty(), paper) {
        let mut papers: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.paper).collect();
        papers.dedup();
        return Err(unknown("paper", paper, &papers));
    }
    let Some(wanted) = figure else {
        return Ok(of_paper);
    };
    let found: Vec<Figure> =
        of_paper.iter().filter(|shipped| is_part(shipped.figure, wanted)).copied().collect();
    if found.is_empty() {
        let names: Vec<&str> = of_paper.iter().map(|shipped| shipped.figure).collect();
        return Err(unknown("figure", wanted, &names));
    }
    Ok(found)
}

/// What a paper is called, or the name itself when none is shipped.
pub fn paper_name(paper: &str) -> &str {
    match paper {
        "pore" => "PORE (MSST 2017)",
        "hwsr" => "HWSR (IEEE TPDS 2016)",
        "raid4smr" => "RAID 4SMR (Le, thesis 2019)",
        "headmove" => "Head-movement reduction (Lin, thesis 2025)",
        "idler" => "Idler (IEEE TC 2020)",
        "ride" => "RIDE (our own, no paper)",
        other => other,
    }
}

/// True for the figure itself and for its parts.
fn is_part(figure: &str, wanted: &str) -> bool {
    figure.strip_prefix(wanted).is_some_and(|rest| {
        rest.is_empty() || (!wanted.is_empty() && rest.starts_with(|c: char| !c.is_ascii_digit()))
    })
}

fn unknown(what: &str, name: &str, known: &[&str]) -> ConfigError {
    let hint = nearest(name, known.iter().copied())
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    ConfigError::words(format!("unknown {what} `{name}`{hint} (known: {})", known.join(", ")))
}
