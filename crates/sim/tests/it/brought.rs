//! Policies that a program brings with it: a run has the report of the policy that they are, and one that fails ends
//! its run alone.

use crate::outside::{NAME, Outside, Wrong, outside};
use crate::report::schema_violations;
use crate::simulate::{back_to_back, stack, workload};
use imbrex_report::{ReplayMode, Report, Run};
use imbrex_sim::experiment::{
    Batch, Case, Experiment, FinishedRuns, Found, RequestSink, RunError, RunFiles, WarmUp, Watch,
    execute,
};
use imbrex_sim::replay::{Fit, ReplayOptions};
use imbrex_stack::{
    BroughtPolicies, BuildOptions, MemberNumbers, Plan, StackConfig, check_brought,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

const TRACE: &str = "synthetic:uniform-random-write/2000";

fn policies(fails_at: u64, with: Wrong) -> BroughtPolicies {
    BroughtPolicies::new([outside(fails_at, with)])
}

fn with_policy(name: &str, brought: &BroughtPolicies) -> StackConfig {
    let policy = format!("cache.policy={name}");
    let mut config = stack("lru", &[&policy, "cache.capacity=256KiB"]);
    config.bring(brought).expect("the policy is there");
    config
}

fn batch(configs: impl IntoIterator<Item = StackConfig>, mode: ReplayMode) -> Batch {
    let mut replay = ReplayOptions { mode, ..back_to_back(1) };
    replay.placement.fit = Fit::Wrap;
    let case = |config| Case {
        config,
        parameters: BTreeMap::new(),
        replay,
        series: vec![],
        events: vec![],
        windows: vec![],
        cut_into_windows: false,
        heads: None,
        drive_scale: 1,
        movement: None,
        drive_scale_option: None,
    };
    let cases = configs.into_iter().map(case).collect();
    Batch { workload: workload(TRACE), seed: 3, cases, jobs: 2 }
}

const BACK_TO_BACK: ReplayMode = ReplayMode::ClosedLoop { depth: 1 };

fn report(config: StackConfig, mode: ReplayMode) -> Report {
    let report = batch([config], mode).run(&|_| ()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(schema_violations(&report), Vec::<String>::new());
    report.without_simulation()
}

#[test]
fn a_run_has_the_report_of_the_policy_that_it_is() {
    let brought = policies(0, Wrong::Nothing);
    for mode in [BACK_TO_BACK, ReplayMode::ClosedLoop { depth: 8 }, ReplayMode::Untimed] {
        let own = report(with_policy("lru", &brought), mode);
        let mut other = report(with_policy(NAME, &brought), mode);
        let text = other.to_table(imbrex_report::TableStyle::Plain);
        let note = "lru: the policy test:lru is code of the caller";
        assert!(text.contains(note) && other.to_html().contains(note), "{text}");
        let run: &mut Run = &mut other.runs[0];
        assert_eq!(std::mem::take(&mut run.cache.brought_policies), [NAME]);
        run.configuration.clone_from(&own.runs[0].configuration);
        run.resolved.clone_from(&own.runs[0].resolved);
        assert!(own.runs[0].rewrites.bands_rewritten > 0 || mode != BACK_TO_BACK);
        assert_eq!(other.to_json(), own.to_json(), "{mode:?}");
    }
}

#[test]
fn one_that_fails_ends_its_run_and_says_why() {
    let brought = policies(50, Wrong::Fails);
    let failed = |batch: &Batch| match batch.run(&|_| ()) {
        Err(RunError::Brought { system, failure }) => {
            assert!(system == "lru" && failure.is::<Outside>(), "{failure}");
        }
        other => panic!("{other:?}"),
    };
    failed(&batch([with_policy(NAME, &brought)], BACK_TO_BACK));
    failed(&batch([with_policy(NAME, &brought)], ReplayMode::Untimed));
    let mut warmed = batch([with_policy(NAME, &brought)], BACK_TO_BACK);
    warmed.workload.warm_up = Some(WarmUp::Share(0.5));
    failed(&warmed);
    // Behind its last choice no request is left that could be refused.
    let own = report(with_policy("lru", &brought), BACK_TO_BACK);
    let cache = &own.runs[0].nodes["cache"];
    let evictions = cache["dirty_evictions"] + cache["clean_evictions"];
    let fails = |fails_at| {
        let brought = policies(fails_at, Wrong::NotCached);
        batch([with_policy(NAME, &brought)], BACK_TO_BACK).run(&|_| ()).is_err()
    };
    assert!(evictions > 50 && fails(evictions) && !fails(evictions + 1), "{evictions}");
}

#[test]
fn the_other_runs_are_kept_and_never_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = |brought: &BroughtPolicies| {
        let finished = FinishedRuns::new(folder.path(), "a build", true);
        let watch = Watch { finished: Some(&finished), ..Watch::nobody() };
        let configs = [with_policy("lru", brought), with_policy(NAME, brought)];
        let made = batch(configs, BACK_TO_BACK).run_with(&RunFiles::default(), &watch);
        (made.is_ok(), finished.count())
    };
    assert_eq!(kept(&policies(50, Wrong::Fails)), (false, 1));
    assert_eq!(kept(&policies(50, Wrong::Nothing)), (true, 1), "another one has the same name");
}

#[test]
fn rows_of_requests_in_memory_are_those_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("requests.csv");
    let brought = policies(0, Wrong::Nothing);
    let log = |sink: RequestSink<'_>| {
        let configs = [with_policy(NAME, &brought), with_policy("lru", &brought)];
        let files = RunFiles { request_log: Some(sink), ..RunFiles::default() };
        let depth_4 = ReplayMode::ClosedLoop { depth: 4 };
        batch(configs, depth_4).run_with(&files, &Watch::nobody()).expect("it runs");
    };
    log(RequestSink::File(&file));
    let table = Mutex::default();
    log(RequestSink::Table(&table));
    let csv = table.into_inner().expect("no holder panics").into_columns().to_csv();
    assert_eq!(csv, std::fs::read_to_string(&file).expect("a file"));
    assert!(csv.lines().count() > 1000, "{}", csv.lines().count());
}

#[test]
fn its_state_is_not_saved() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lru.state");
    let mut batch = batch([with_policy(NAME, &policies(0, Wrong::Nothing))], BACK_TO_BACK);
    batch.workload.warm_up = Some(WarmUp::Requests(10));
    let files = RunFiles { save_state: Some(&file), ..RunFiles::default() };
    let refused = batch.run_with(&files, &Watch::nobody()).expect_err("it is refused");
    assert_eq!(
        refused.to_string(),
        "--save-state: system `lru`: the state of the policy \"test:lru\" cannot be saved; accepted: another system"
    );
    assert!(!file.exists());
}

#[test]
fn what_was_not_brought_is_refused() {
    let none = BroughtPolicies::default();
    let mut config = stack("lru", &[&format!("cache.policy={NAME}")]);
    let words = "node `cache`: policy = \"test:lru\" is code of a program, which has brought none of that name; accepted: \
                 a policy of imbrex, or in Python one of `policies`";
    assert_eq!(config.bring(&none).expect_err("it is refused").to_string(), words);
    for options in [BuildOptions::simulate(1), BuildOptions::image(1, MemberNumbers::Counted)] {
        let refused = Plan::new(&config, &options).map(drop).expect_err("it is refused");
        assert_eq!(refused.to_string(), words);
    }
    let reason = config.node.iter().find_map(imbrex_stack::NodeConfig::refused_by_serving);
    assert!(reason.is_some_and(|it| it.contains("\"test:lru\" cannot be served")));
    let brought = policies(0, Wrong::Nothing);
    let mut other = stack("lru", &["cache.policy=test:lur"]);
    let refused = other.bring(&brought).expect_err("it is refused").to_string();
    assert!(refused.ends_with("accepted: test:lru, or a policy of imbrex"), "{refused}");
    let refused = check_brought(&brought, [&stack("lru", &[])].into_iter()).expect_err("unused");
    assert!(refused.to_string().contains("no stack has the policy \"test:lru\""), "{refused}");
    check_brought(&brought, [&stack("pore", &[]), &config].into_iter()).expect("it is used");
    let durable = stack("lru", &[&format!("cache.policy={NAME}"), "cache.durable=true"]);
    let mut durable = durable;
    durable.bring(&brought).expect("the policy is there");
    let refused = batch([durable], BACK_TO_BACK).run(&|_| ()).expect_err("it is refused");
    assert!(refused.to_string().contains("the policy test:lru in a durable cache"), "{refused}");
}

#[test]
fn experiments_have_them_too() {
    let text = format!(
        r#"
        name = "small"
        title = "a test"
        size = "8 GiB"
        systems = ["lru"]
        set = {{ "cache.capacity" = "256KiB" }}
        sweep = {{ "cache.policy" = ["lru", "{NAME}"] }}
        workload = {{ path = "synthetic:uniform-random-write", scale = 2000 }}
        "#
    );
    let parse = || Experiment::parse("test.toml", &text, Path::new("")).expect("it is right");
    let run = |experiment| execute(&[experiment], &[], None, 2, &Watch::nobody());
    let refused = run(parse()).map(drop).expect_err("nobody brought it").to_string();
    assert!(refused.contains("has brought none of that name"), "{refused}");
    let mut experiment = parse();
    experiment.brought = policies(0, Wrong::Nothing);
    let outcomes = run(experiment).expect("it runs");
    let Found::Runs(report) = &outcomes[0].workloads[0].found else { panic!("{outcomes:?}") };
    let [own, other] = &report.runs[..] else { panic!("{}", report.runs.len()) };
    assert_eq!((own.hits.clone(), &own.nodes), (other.hits.clone(), &other.nodes));
    assert_eq!(other.cache.brought_policies, [NAME]);
}
