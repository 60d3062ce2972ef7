//! `imbrex serve`.

mod control;
mod live_report;
mod private_socket;
mod recording;
mod report_file;
mod same_stack;

use super::console::{emit, remark};
use super::create::IMAGE_SEED;
use super::members::{
    FileUse, Member, Place, StackOnFiles, disks_without_labels, dump, image_options, layer_error,
    listed_members, tell_of_labels,
};
use super::replace::MemberReplacer;
use super::stack::{refuse_unservable, stack_with_settings};
use crate::args::{DirectArg, ServeArgs};
use crate::exit_code::ExitCode;
use crate::failure::{Failure, usage};
use control::NewDisks;
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::counters::Gauge;
use imbrex_core::disk::Disk;
use imbrex_core::durability::DamagedEnd;
use imbrex_core::engine::Engine;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::stack::Stack;
use imbrex_drives::DiskStatistics;
use imbrex_drives::quantity::parse_size;
use imbrex_report::human_bytes;
use imbrex_serve::control::Commands;
use imbrex_serve::disk::{DirectIo, OVERLAY_BYTES_MAX, OpenFiles};
use imbrex_serve::events::OnEvent;
use imbrex_serve::image::{Image, ImageDisks, create_private_folder, new_seed};
use imbrex_serve::listener::Listen;
use imbrex_serve::nbd::handshake::Export;
use imbrex_serve::server::{RunningCommand, ServeError, Server};
use imbrex_serve::signals::FiguresSignal;
use imbrex_stack::{
    ArrayObserver, BuildOptions, Built, Describe, DiskConfig, FillObserver, Footprint,
    MemberNumbers, Plan, StackConfig,
};
use live_report::LiveReport;
use private_socket::PrivateSocket;
use recording::{Recording, create_file};
use report_file::ReportFile;
pub(super) use same_stack::is_name;
use same_stack::stack_of_image;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Instant;

/// A stack that is ready to be served.
struct Served {
    config: StackConfig,
    engine: Engine,
    describe: Describe,
    /// What holds it; `None` when its drives are emulated.
    files: Option<Files>,
    /// Those of its files that are open.
    open_files: OpenFiles,
    /// Where new disks come from.
    new_disks: NewDisks,
}

/// Makes new simulated drives for a stack whose drives are emulated.
struct EmulatedDisks {
    plan: Plan,
    footprint: Footprint,
    /// By node, what is counted of the drives there, which goes on.
    statistics: BTreeMap<String, Rc<DiskStatistics>>,
    /// Where their contents are kept.
    folder: Option<PathBuf>,
}

impl EmulatedDisks {
    /// A blank drive for a disk node.
    fn make(&mut self, node: &str) -> Result<Box<dyn Disk>, Failure> {
        if let Some(folder) = &self.folder {
            // The file of the lost one, which would not be blank. It may be gone already.
            let _ = std::fs::remove_file(contents_of(folder, node));
        }
        let footprint = Some(self.footprint);
        let mut design = self.plan.design(node, footprint, ContentKind::Bytes)?;
        if let Some(statistics) = self.statistics.get(node) {
            design.count_into(Rc::clone(statistics));
        }
        Ok(Box::new(design.simulate()?))
    }
}

/// An image in use.
struct Files {
    image: Rc<RefCell<Image>>,
    members: Vec<Member>,
}

/// Serves a stack until it is told to stop, then prints the report.
pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    // First of all: until then the signal ends the process.
    let asked = FiguresSignal::catch()?;
    let image = match &args.data {
        Some(data) if !args.emulate => {
            let image = match args.read_only {
                true => Image::open_read_only(data)?,
                false => Image::open(data)?,
            };
            let config = stack_of_image(args, data, &image)?;
            Some((image, config, data))
        }
        _ => None,
    };
    let (listen, private) = listen(args)?;
    let mut server = Server::bind(&listen)?;
    let commands_at = control::bind(args, &mut server)?;
    let report_file = args.report.as_deref().map(ReportFile::open).transpose()?;
    let recording_file = args.record.as_deref().map(create_file).transpose()?;
    let served = match image {
        Some((image, config, data)) => open_image(args, image, config, data, &server)?,
        None => emulate(args, &server)?,
    };
    let Served { config, mut engine, describe, files, open_files, new_disks } = served;
    let describe = Rc::new(describe);
    refuse_member_as_report(report_file.as_ref(), files.as_ref())?;
    let device_bytes = engine.stack.geometry().blocks.bytes();
    let recording = recording_file
        .map(|file| Recording::begin(file, &config.name, device_bytes))
        .transpose()?;
    let live = LiveReport::new();
    let mut fill = FillObserver::new(&describe, live.recorder());
    let mut arrays = ArrayObserver::new(&describe, live.recorder());
    server.observe(live.observer(recording.as_ref()));
    server.stop_on_signals()?;
    asked.wake(&server)?;
    let exports = exports(&config, &engine.stack, &describe, args.read_only)?;
    if let Some(files) = &files {
        let nodes = files.members.iter().map(|member| member.node.clone());
        server.name_disks(nodes.collect());
    }
    let commands = control::commands(args, &mut engine, &describe, new_disks, &live);
    server.take_commands(Commands { files: open_files, ..commands });
    on_event(args, &config).into_iter().for_each(|on_event| server.run_on_event(on_event));
    let (uri, size) = (server.uri(), human_bytes(device_bytes));
    let mode = files.as_ref().map_or_else(
        || "emulated, contents are not kept".to_string(),
        |files| mode_of(args.read_only, &files.members),
    );
    let commands =
        commands_at.map_or_else(String::new, |path| format!("; commands at {}", path.display()));
    remark!("imbrex: serving {} ({size}) at {uri}; {mode}{commands}", config.name);
    let command = args.run.as_deref().map(|command| server.run_command(command)).transpose()?;
    let outcome = server.run(&mut engine, exports, &mut |now, stack| {
        fill.observe(now, stack);
        arrays.observe(now, stack);
        if asked.take() {
            tell(&live.figures(&describe, stack, &uri, IMAGE_SEED));
        }
    });
    drop((fill, private));
    if let Some(Files { image, members, .. }) = files {
        outcome.map_err(|error| unserved(error, &config, &describe, &members))?;
        dump(&members)?;
        let image = Rc::into_inner(image).expect("the server has ended");
        image.into_inner().close();
    }
    let report = live.report(&describe, &engine.stack, &uri, IMAGE_SEED, arrays);
    finish(report.to_json(), report_file, recording, command)
}

/// The command that is run for what happens, and what it is told of the device.
fn on_event(args: &ServeArgs, config: &StackConfig) -> Option<OnEvent> {
    let command = args.on_event.clone()?;
    let folder = args.data.as_ref().filter(|_| !args.emulate);
    let image = folder.map(|folder| {
        // A folder that has gone since it was opened has the name by which it was opened.
        std::path::absolute(folder).unwrap_or_else(|_| folder.clone())
    });
    Some(OnEvent { command, stack: config.name.clone(), image })
}

/// What clients find: the device, and each node below a span as a device of its own.
fn exports(
    config: &StackConfig,
    stack: &Stack,
    describe: &Describe,
    is_read_only: bool,
) -> Result<Vec<Export>, Failure> {
    let whole = Export {
        name: config.name.clone(),
        description: config.description.clone(),
        offset: 0,
        bytes: stack.geometry().blocks.bytes(),
        is_read_only,
    };
    let mut exports = vec![whole];
    let mut offset = 0;
    for name in config.top().exports() {
        if name == config.name {
            return Err(format!(
                "node `{name}` has the name of the stack, under which clients find the whole device; \
                 accepted: nodes below a span with other names"
            )
            .into());
        }
        let blocks = describe.blocks_of(name);
        let bytes = blocks.expect("an export is a node of the stack").bytes();
        exports.push(Export {
            name: name.to_owned(),
            description: format!("a part of {}", config.name),
            offset,
            bytes,
            is_read_only,
        });
        offset += bytes;
    }
    Ok(exports)
}

/// Why a device could not be taken down in order, with the layer that is to blame if one is.
fn unserved(
    error: ServeError,
    config: &StackConfig,
    describe: &Describe,
    members: &[Member],
) -> Failure {
    match error {
        ServeError::Close { node, .. } => layer_error(config, describe, members, node, &error),
        error => error.into(),
    }
}

/// Puts the report where it belongs and ends the recording. Standard output belongs to the command
/// of `--run` where there is one; the report is then the last line on standard error.
fn finish(
    report: String,
    report_file: Option<ReportFile>,
    recording: Option<Recording>,
    command: Option<RunningCommand>,
) -> Result<ExitCode, Failure> {
    let recorded = recording.map_or(Ok(()), Recording::finish);
    let mut last_line = None;
    match report_file {
        Some(file) => file.write(&report)?,
        None if command.is_some() => last_line = Some(report),
        None => emit(&report),
    }
    recorded?;
    let status = command.map(RunningCommand::wait).transpose()?;
    if let Some(line) = last_line {
        tell(&line);
    }
    Ok(status.map_or(ExitCode::SUCCESS, exit_code))
}

/// Writes lines to standard error in one piece. Whoever does not want them has closed it.
fn tell(lines: &str) {
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// The report must not be written over what the device keeps.
fn refuse_member_as_report(
    report: Option<&ReportFile>,
    files: Option<&Files>,
) -> Result<(), Failure> {
    let (Some(report), Some(files)) = (report, files) else {
        return Ok(());
    };
    let file = report.metadata()?;
    let member = files.members.iter().find(|member| member.is(&file));
    member.map_or(Ok(()), |member| Err(report.is_member(&member.node)))
}

/// What a client can count on, and how the files are used.
fn mode_of(is_read_only: bool, members: &[Member]) -> String {
    let promise = if is_read_only { "read-only" } else { "durable" };
    let named = |direct: bool| -> Vec<&str> {
        let used = members.iter().filter(|member| member.lost.is_none());
        let members = used.filter(|member| member.is_direct == direct);
        members.map(|member| member.node.as_str()).collect()
    };
    match (named(true), named(false)) {
        (_, buffered) if buffered.is_empty() => format!("{promise}, direct I/O"),
        (direct, _) if direct.is_empty() => format!("{promise}, buffered I/O"),
        (direct, buffered) => format!(
            "{promise}, direct I/O on {}, buffered I/O on {}",
            direct.join(", "),
            buffered.join(", ")
        ),
    }
}

/// The exit status of a command as shells put it: 128 and the signal for one that a signal ended.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Where clients connect, and the folder of a socket that is nobody else's business.
fn listen(args: &ServeArgs) -> Result<(Listen, Option<PrivateSocket>), Failure> {
    match (&args.socket, &args.listen) {
        (Some(path), _) => Ok((Listen::Unix(path.clone()), None)),
        (None, Some(address)) => {
            let address = address.parse().map_err(|_| {
                usage(format!(
                    "--listen {address}: accepted: an address and a port, such as 127.0.0.1:10809"
                ))
            })?;
            let listen = if args.trust_network { Listen::Network } else { Listen::Tcp };
            Ok((listen(address), None))
        }
        (None, None) => {
            let private = PrivateSocket::new()?;
            Ok((Listen::Unix(private.path()), Some(private)))
        }
    }
}

/// Lets the stack of an image come up, recovering what it must. Nothing is written unless all of
/// it does.
fn open_image(
    args: &ServeArgs,
    mut image: Image,
    config: StackConfig,
    data: &Path,
    server: &Server,
) -> Result<Served, Failure> {
    let started = Instant::now();
    if args.force && !args.read_only && !config.disks().any(DiskConfig::is_remote) {
        let words = "--force: no disk of the stack is at another server; accepted: with --read-only, to show \
                     disks that do not belong together";
        return Err(usage(words));
    }
    let numbers = MemberNumbers::Listed(listed_members(&image.description().members));
    let plan = Plan::new(&config, &image_options(numbers))?;
    if let Some(problem) = image.description().size_problem(plan.blocks()) {
        return Err(format!("{}: {problem}", data.join("image").display()).into());
    }
    let direct = match args.direct {
        DirectArg::Auto => DirectIo::Auto,
        DirectArg::On => DirectIo::On,
        DirectArg::Off => DirectIo::Off,
    };
    let path_of = |name: &str| image.node_path(name);
    let set = image.description().uuid;
    let disks = disks_of(&image, &config);
    // Who only looks may want to see what does not belong together.
    let shows_all = args.force && args.read_only;
    let files = FileUse {
        disks: (!shows_all).then_some(&disks),
        image: set,
        place: Place::of(&config, data, args.force)?,
        direct,
        overlay_bytes_max: args.read_only.then_some(OVERLAY_BYTES_MAX),
    };
    let mut stack = StackOnFiles::build(&config, &plan, &path_of, files, &server.waker())?;
    if !args.read_only {
        stack.leave_out_full_disks(set, &disks);
    }
    let seed = new_seed().map_err(|error| format!("no random number: {error}"))?;
    let start = Start::Recover(Some(set));
    stack.come_up(set, |engine, labels| server.open_labelled(engine, start, labels, seed))?;
    if shows_all {
        remark!(
            "imbrex: warning: --force: the labels of the disks are not compared; what is shown may be old, \
             or another disk's"
        );
    }
    let disks = (!args.read_only).then_some(disks);
    let_writes_through(&mut stack, &mut image, disks, data)?;
    let image = Rc::new(RefCell::new(image));
    let new_disks = match args.read_only {
        true => NewDisks::None,
        false => {
            let image = Rc::clone(&image);
            let waker = server.waker();
            NewDisks::Image(MemberReplacer::new(image, &stack, direct, waker))
        }
    };
    let StackOnFiles { engine, describe, members, files: open_files, .. } = stack;
    warn_of_damaged_ends(&config, &engine.stack, &describe, &members);
    if image.borrow().was_interrupted() {
        let took_s = started.elapsed().as_secs_f64();
        let data = data.display();
        let place = if args.read_only { "in memory " } else { "" };
        remark!("imbrex: {data} was not closed in order: recovered {place}in {took_s:.3} s");
    }
    for node in config.without_checksums() {
        let data = data.display();
        remark!(
            "imbrex: {data}: node `{node}` keeps no checksums: a block that has changed on the disk is \
             served as it is; only `imbrex create` makes an image with them"
        );
    }
    image.borrow().mark_in_use();
    let in_use: Vec<PathBuf> = members.iter().map(|member| member.path.clone()).collect();
    image.borrow().remove_leftovers(&in_use);
    Ok(Served {
        new_disks,
        config,
        engine,
        describe,
        files: Some(Files { image, members }),
        open_files,
    })
}

/// Carries out what was held back while the layers came up, the labels first, and writes down which
/// disks have one now. `disks` is `None` where nothing is written.
fn let_writes_through(
    stack: &mut StackOnFiles,
    image: &mut Image,
    disks: Option<ImageDisks>,
    data: &Path,
) -> Result<(), Failure> {
    if let Some(disks) = &disks {
        stack.make_room(disks)?;
    }
    StackOnFiles::release(std::mem::take(&mut stack.held), &stack.members)?;
    if let Some(disks) = disks
        && image.describe_labels(stack.labelled(disks))?
    {
        tell_of_labels(image, &data.display());
    }
    Ok(())
}

/// The disks that an image lists, or will list when they have labels.
fn disks_of(image: &Image, config: &StackConfig) -> ImageDisks {
    let listed = image.description().disks.clone();
    listed.unwrap_or_else(|| disks_without_labels(config))
}

/// Tells of every layer that found the newest block of its journal damaged or torn.
fn warn_of_damaged_ends(
    config: &StackConfig,
    stack: &Stack,
    describe: &Describe,
    members: &[Member],
) {
    for node in stack.bottom_up() {
        let blocks = stack.counts(node).gauge(Gauge::RolledBackBlocksMax);
        if blocks > 0 {
            let words = DamagedEnd::words(blocks);
            let warning = layer_error(config, describe, members, node, &words);
            remark!("imbrex: warning: {warning}");
        }
    }
}

/// The file with the contents of an emulated drive, whose name leads nowhere else.
fn contents_of(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.contents"))
}

/// The folder for the contents of emulated drives. They start as zeroes each time, because what
/// the translation knew of them is gone: those that are there already of these nodes are removed.
fn make_contents_dir(folder: &Path, nodes: &[&str]) -> Result<(), Failure> {
    if let Some(node) = nodes.iter().find(|node| node.contains('/')) {
        return Err(format!(
            "node `{node}`: its name cannot name a file in {}; accepted: a name without `/`",
            folder.display()
        )
        .into());
    }
    if Image::is_in(folder) {
        return Err(format!(
            "{}: an image is kept there; emulated drives need a folder of their own",
            folder.display()
        )
        .into());
    }
    let named = |path: &Path, error| format!("{}: {error}", path.display());
    create_private_folder(folder).map_err(|error| named(folder, error))?;
    for path in nodes.iter().map(|node| contents_of(folder, node)) {
        match std::fs::remove_file(&path) {
            Ok(()) => {
                remark!("imbrex: {} was removed: an emulated drive starts empty", path.display())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(named(&path, error).into()),
        }
    }
    Ok(())
}

fn emulate(args: &ServeArgs, server: &Server) -> Result<Served, Failure> {
    if args.scale == 0 {
        return Err(usage("--scale 0: accepted: 1 or more"));
    }
    let config = stack_with_settings(&args.stack, &args.set)?;
    refuse_unservable(&config)?;
    let options = BuildOptions {
        seed: IMAGE_SEED,
        size_bytes: args.size.as_deref().map(parse_size).transpose()?,
        scale: args.scale,
        trim_disks: false,
        contents_dir: args.data.clone(),
        durable: false,
        members: MemberNumbers::Counted,
    };
    let plan = Plan::new(&config, &options)?;
    if let Some(folder) = &args.data {
        let nodes: Vec<&str> = config.disks().map(|disk| disk.name.as_str()).collect();
        make_contents_dir(folder, &nodes)?;
    }
    let footprint = Footprint::whole_device(plan.blocks().bytes());
    let built = plan.build(Some(footprint), None, ContentKind::Bytes)?;
    let Built { stack, disks, describe } = built;
    let disks_of = describe.disks();
    let emulated = EmulatedDisks {
        plan,
        footprint,
        statistics: disks_of
            .map(|disk| (disk.name().to_owned(), Rc::clone(disk.statistics())))
            .collect(),
        folder: args.data.clone(),
    };
    let mut engine =
        Engine { stack, disks, buffers: Buffers::new(ContentKind::Bytes), in_flight_max: u32::MAX };
    server
        .open(&mut engine, Start::Format(Uuid([0; 16])))
        .map_err(|(_, error)| error.to_string())?;
    Ok(Served {
        config,
        engine,
        describe,
        files: None,
        open_files: OpenFiles::default(),
        new_disks: NewDisks::Emulated(emulated),
    })
}
