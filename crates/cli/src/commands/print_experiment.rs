//! The experiment file that makes the runs of a comparison.

use crate::args::{CompareArgs, DependenciesArg, DueArg, FitArg, ReadArgs};
use crate::failure::{Failure, usage};
use imbrex_sim::experiment::WarmUp;
use imbrex_stack::Setting;
use imbrex_traces::BlockRule;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The text of the file; `is_cut` where a stack has windows into which a trace of one device is cut. Paths in it are as they were given, and start from where the file will lie.
pub fn print_experiment(
    args: &CompareArgs,
    systems: &[String],
    settings: &[Setting],
    swept: &BTreeMap<String, Vec<Value>>,
    is_cut: bool,
) -> Result<String, Failure> {
    if let Some(option) = unstated(args) {
        return Err(usage(format!(
            "--print-experiment with {option}: an experiment file has no key for it; accepted: without {option}"
        )));
    }
    let mut file = Table::new();
    file.insert("name".into(), "compare".into());
    file.insert("title".into(), "What `imbrex compare` was asked for".into());
    file.insert("systems".into(), list(systems));
    let seed =
        args.output.seed.map(|seed| i64::try_from(seed).map_err(|_| too_large("--seed", seed)));
    insert(&mut file, "seed", seed.transpose()?);
    insert(&mut file, "size", args.size.clone());
    if !args.series.is_empty() {
        file.insert("series".into(), list(&args.series));
    }
    let mut workload = workload(args)?;
    insert(&mut workload, "cut_into_windows", is_cut.then_some(true));
    file.insert("workload".into(), Value::Table(workload));
    let set = settings.iter().map(|it| (format!("{}.{}", it.node, it.key), it.value.clone()));
    let set: Table = set.collect();
    if !set.is_empty() {
        file.insert("set".into(), Value::Table(set));
    }
    let sweep: Table =
        swept.iter().map(|(key, values)| (key.clone(), Value::Array(values.clone()))).collect();
    if !sweep.is_empty() {
        file.insert("sweep".into(), Value::Table(sweep));
    }
    Ok(toml::to_string(&file).expect("a table of values"))
}

fn workload(args: &CompareArgs) -> Result<Table, Failure> {
    let of = &args.workload;
    let mut workload = Table::new();
    workload.insert("path".into(), of.trace.clone().into());
    insert(&mut workload, "format", of.read.format.clone());
    insert(&mut workload, "columns", of.read.map.clone());
    let limit = of.limit.map(|limit| i64::try_from(limit).map_err(|_| too_large("--limit", limit)));
    insert(&mut workload, "limit", limit.transpose()?);
    insert(&mut workload, "repeat", (of.repeat > 1).then_some(i64::from(of.repeat)));
    insert(&mut workload, "new_blocks", of.new_blocks.then_some(true));
    let warm_up = of.warm_up.map(|it| match it {
        WarmUp::Requests(requests) => match i64::try_from(requests) {
            Ok(requests) => Ok(Value::Integer(requests)),
            Err(_) => Err(too_large("--warm-up", requests)),
        },
        WarmUp::Share(_) | WarmUp::UntilFull => Ok(Value::String(it.to_string())),
    });
    insert(&mut workload, "warm_up", warm_up.transpose()?);
    let fit = of.fit.map(|fit| match fit {
        FitArg::Wrap => "wrap",
        FitArg::Scale => "scale",
    });
    insert(&mut workload, "fit", fit);
    insert(&mut workload, "blocks", (of.blocks == BlockRule::Size).then_some("size"));
    insert(&mut workload, "queue_depth", (of.queue_depth > 1).then_some(i64::from(of.queue_depth)));
    insert(&mut workload, "open_loop_speed", of.open_loop.then_some(of.speed));
    insert(&mut workload, "streams", of.streams.map(i64::from));
    let due = of.due.map(|due| match due {
        DueArg::Absolute => "absolute",
        DueArg::Shift => "shift",
    });
    insert(&mut workload, "due", due);
    let dependencies = of.dependencies.map(|it| match it {
        DependenciesArg::InTurn => "in-turn",
        DependenciesArg::Latency => "latency",
    });
    insert(&mut workload, "dependencies", dependencies);
    Ok(workload)
}

/// The first option that was given and that no key of an experiment stands for.
fn unstated(args: &CompareArgs) -> Option<&'static str> {
    let ReadArgs {
        format: _,
        map: _,
        delimiter,
        time_unit,
        page_bytes,
        subsecond,
        http_writes,
        fio_wait,
        event,
        obj_id,
        devices,
        device_stride,
        accept_unfinished,
    } = &args.workload.read;
    let given = [
        (args.workload.trace == "-", "--trace -"),
        (args.drive_scale != 1, "--drive-scale"),
        (
            args.set
                .iter()
                .any(|text| text.split('=').next().is_some_and(|path| path.contains(':'))),
            "--set of one stack",
        ),
        (args.bound, "--bound"),
        (args.untimed, "--untimed"),
        (delimiter.is_some(), "--delimiter"),
        (time_unit.is_some(), "--time-unit"),
        (page_bytes.is_some(), "--page-bytes"),
        (subsecond.is_some(), "--subsecond"),
        (http_writes.is_some(), "--http-writes"),
        (fio_wait.is_some(), "--fio-wait"),
        (event.is_some(), "--event"),
        (obj_id.is_some(), "--obj-id"),
        (devices.is_some(), "--devices"),
        (device_stride.is_some(), "--device-stride"),
        (*accept_unfinished, "--accept-unfinished"),
    ];
    given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
}

fn insert(table: &mut Table, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        table.insert(key.into(), value.into());
    }
}

fn list(texts: &[String]) -> Value {
    Value::Array(texts.iter().cloned().map(Value::String).collect())
}

fn too_large(option: &str, value: u64) -> Failure {
    usage(format!("{option} {value}: an experiment file holds at most {}", i64::MAX))
}
