//! Two examples for the help of each command.

use super::Cli;
use clap::{Command, CommandFactory};

/// Each command by its path, with two command lines.
const EXAMPLES: [(&str, [&str; 2]); 31] = [
    ("systems", ["imbrex systems", "imbrex systems --show pore"]),
    (
        "compare",
        [
            "imbrex compare --trace mytrace.csv.gz --systems smr-only,lru,pore,ride --out results",
            "imbrex compare --trace mytrace.csv.gz --systems lru,pore --sweep cache.capacity=1%,2%,5%,10%",
        ],
    ),
    (
        "verdict",
        [
            "imbrex verdict mytrace.csv.gz",
            "imbrex verdict mytrace.csv.gz --drive wd40efax --cache 1%,5% --out results",
        ],
    ),
    (
        "bound",
        [
            "imbrex bound mytrace.csv.gz --cache 2%",
            "imbrex bound mytrace.csv.gz --cache 1GiB --json",
        ],
    ),
    ("place", ["imbrex place results/report.json", "imbrex place served.json"]),
    ("reliability", ["imbrex reliability array.toml", "imbrex reliability array.toml --json"]),
    (
        "run",
        ["imbrex run experiments/pore/fig13.toml", "imbrex run mine.toml --out results --jobs 2"],
    ),
    ("reproduce", ["imbrex reproduce pore", "imbrex reproduce hwsr fig13 --out results"]),
    (
        "sweep plan",
        [
            "imbrex sweep plan mine.toml --emit jobs.jsonl",
            "imbrex sweep plan mine.toml --emit jobs.jsonl --set disk.drive=wd40efax --seed 2",
        ],
    ),
    (
        "sweep run",
        [
            "imbrex sweep run jobs.jsonl --out results",
            "imbrex sweep run jobs.jsonl --out results --jobs 8 --retry-failed",
        ],
    ),
    (
        "sweep run-job",
        [
            "imbrex sweep run-job jobs.jsonl --out results --index 0-63",
            "imbrex sweep run-job jobs.jsonl --out results --id 1e2f758a",
        ],
    ),
    (
        "sweep collect",
        [
            "imbrex sweep collect jobs.jsonl --out results",
            "imbrex sweep collect jobs.jsonl --out results --partial",
        ],
    ),
    ("diff", ["imbrex diff before after", "imbrex diff before/report.json after --html diff.html"]),
    ("trace info", ["imbrex trace info mytrace.csv.gz", "imbrex trace info mytrace.csv.gz --json"]),
    (
        "trace convert",
        [
            "imbrex trace convert mytrace.csv.gz mytrace.imbrex.xz",
            "imbrex trace convert --limit 10000 mytrace.blktrace.0 start.csv",
        ],
    ),
    (
        "trace combine",
        [
            "imbrex trace combine a.csv,offset=0 b.csv,offset=1TiB --output both.imbrex",
            "imbrex trace combine day.csv night.csv,delay=1h --output whole.imbrex.xz",
        ],
    ),
    (
        "trace synth",
        ["imbrex trace synth --list", "imbrex trace synth wdev-like wdev.imbrex.xz --scale 16"],
    ),
    (
        "trace movement",
        ["imbrex trace movement mytrace.csv.gz", "imbrex trace movement mytrace.csv.gz --json"],
    ),
    (
        "trace mrc",
        [
            "imbrex trace mrc mytrace.csv.gz",
            "imbrex trace mrc mytrace.csv.gz --sizes 1%,5%,1GiB --html hits.html",
        ],
    ),
    ("drive bench", ["imbrex drive bench st8000as0002", "imbrex drive bench --json st5000as0011"]),
    (
        "drive fit",
        ["imbrex drive fit latency_lat.1.log", "imbrex drive fit --json latency_lat.1.log"],
    ),
    (
        "drive fio",
        [
            "imbrex drive fio st8000as0002 job.fio",
            "imbrex drive fio lru job.fio --set cache.capacity=1GiB",
        ],
    ),
    ("drive show", ["imbrex drive show st8000as0002", "imbrex drive show wd40efax"]),
    ("doctor", ["imbrex doctor", "imbrex doctor /dev/sda"]),
    (
        "create",
        [
            "imbrex create pore --data disk --size 64GiB",
            "imbrex create lru --data disk --size 64GiB --set cache.capacity=4GiB",
        ],
    ),
    (
        "serve",
        [
            "imbrex serve pore --data disk --socket disk.sock",
            "imbrex serve st8000as0002 --emulate --scale 64 --socket disk.sock",
        ],
    ),
    (
        "control",
        ["imbrex control disk.sock.control status", "imbrex control disk.sock.control disk-0 fail"],
    ),
    ("inspect", ["imbrex inspect disk", "imbrex inspect disk --json"]),
    ("check", ["imbrex check disk", "imbrex check disk --repair"]),
    (
        "crashtest",
        [
            "imbrex crashtest --stack pore --seeds 0..10",
            "imbrex crashtest --stack mine.toml --points 1000",
        ],
    ),
    ("completions", ["imbrex completions bash > imbrex.bash", "imbrex completions zsh > _imbrex"]),
];

/// The command line with its examples.
pub fn command() -> Command {
    EXAMPLES.iter().fold(Cli::command(), |command, (path, examples)| {
        let words: Vec<&str> = path.split(' ').collect();
        with_help(command, &words, examples)
    })
}

fn with_help(command: Command, path: &[&'static str], examples: &[&str; 2]) -> Command {
    match path {
        [] => command.after_help(format!("Examples:\n  {}", examples.join("\n  "))),
        [first, rest @ ..] => {
            command.mut_subcommand(first, |inner| with_help(inner, rest, examples))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of the commands that have no commands of their own. Those of `control` are what it is told.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|it| it.get_name() != "help") {
            let path = format!("{path} {}", inner.get_name()).trim().to_string();
            match inner.has_subcommands() && path != "control" {
                true => leaves(inner, &path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn every_command_has_two_examples_that_are_command_lines() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "", &mut found);
        let mut known: Vec<String> = EXAMPLES.iter().map(|(path, _)| path.to_string()).collect();
        found.sort();
        known.sort();
        assert_eq!(known, found);
        for (path, examples) in EXAMPLES {
            for example in examples {
                let line = example.split(" > ").next().expect("a command");
                assert!(line.starts_with(&format!("imbrex {path}")), "{example}");
                let result = command().try_get_matches_from(line.split(' '));
                assert!(result.is_ok(), "{example}: {}", result.expect_err("an error"));
            }
        }
        let help =
            command().find_subcommand_mut("compare").expect("compare").render_help().to_string();
        assert!(help.contains("Examples:\n  imbrex compare"), "{help}");
    }
}
