//! `imbrex serve`.

mod live_report;
mod recording;

use super::create::{IMAGE_SEED, image_options};
use super::{emit, stack_with_settings};
use crate::Failure;
use crate::args::{DirectArg, ServeArgs};
use imbrex_core::buffer::{Buffers, ContentKind};
use imbrex_core::disk::Disk;
use imbrex_core::engine::Engine;
use imbrex_serve::disk::{DirectIo, FileDisk};
use imbrex_serve::image::Image;
use imbrex_serve::listener::Listen;
use imbrex_serve::nbd::handshake::Export;
use imbrex_serve::server::Server;
use imbrex_sim::disk::MeasuredDisk;
use imbrex_sim::experiment::config::DiskConfig;
use imbrex_sim::experiment::{BuildOptions, Built, ConfigError, FillObserver, Plan, StackConfig};
use imbrex_sim::quantity::parse_size;
use imbrex_sim::report::human_bytes;
use live_report::LiveReport;
use recording::{Recording, create_file};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

/// A stack that is ready to be served, with the image that holds it, if any.
struct Served {
    config: StackConfig,
    built: Built,
    image: Option<Image>,
}

/// Serves a stack until it is told to stop, then prints the report.
pub fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let listen = listen(args)?;
    let image = match &args.data {
        Some(data) if !args.emulate => Some(Image::open(data)?),
        _ => None,
    };
    if let Some(image) = &image {
        check_stack(&args.stack, image, args.data.as_deref())?;
    }
    let mut server = Server::bind(&listen)?;
    let recording_file = args.record.as_deref().map(create_file).transpose()?;
    let served = match image {
        Some(image) => open_image(image, args.direct, &server)?,
        None => emulate(args)?,
    };
    let Served {
        config,
        built,
        image,
    } = served;
    let Built {
        stack,
        disks,
        describe,
    } = built;
    let device_bytes = stack.geometry().blocks.bytes();
    let recording = args
        .record
        .as_deref()
        .zip(recording_file)
        .map(|(path, file)| Recording::begin(path, file, &config.name, device_bytes))
        .transpose()?;
    let live = LiveReport::new();
    let mut fill = FillObserver::new(&describe, live.recorder());
    server.observe(live.observer(recording.as_ref()));
    server.stop_on_signals()?;
    // From here on an end that is not in order leaves an image that is refused.
    let image = image.map(Image::begin_use).transpose()?;
    let export = Export {
        name: config.name.clone(),
        description: config.description.clone(),
        bytes: device_bytes,
    };
    let (uri, size) = (server.uri(), human_bytes(export.bytes));
    let mode = if args.emulate {
        "emulated, contents are not kept"
    } else {
        "not crash-safe"
    };
    eprintln!("imbrex: serving {} ({size}) at {uri}; {mode}", config.name);
    let command = args
        .run
        .as_deref()
        .map(|command| server.run_command(command))
        .transpose()?;
    let buffers = Buffers::new(ContentKind::Bytes);
    let mut engine = Engine {
        stack,
        disks,
        buffers,
        in_flight_max: u32::MAX,
    };
    let outcome = server.run(&mut engine, export, &mut |now, stack| {
        fill.observe(now, stack)
    });
    drop(fill);
    // An image is marked clean only when all of it is known to be on the medium.
    outcome?;
    if let Some(image) = image {
        image.close_cleanly(&engine.stack.save())?;
    }
    emit(
        &live
            .report(&describe, &engine.stack, &uri, IMAGE_SEED)
            .to_json(),
    );
    if let Some(recording) = recording {
        recording.finish()?;
    }
    match command {
        None => Ok(ExitCode::SUCCESS),
        Some(command) => Ok(exit_code(command.wait()?)),
    }
}

/// The exit status of a command as shells put it: 128 and the signal for one that a signal ended.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn listen(args: &ServeArgs) -> Result<Listen, Failure> {
    match (&args.socket, &args.listen) {
        (Some(path), _) => Ok(Listen::Unix(path.clone())),
        (None, Some(address)) => Ok(Listen::Tcp(address.parse().map_err(|_| {
            format!("--listen {address}: accepted: a loopback address and a port, such as 127.0.0.1:10809")
        })?)),
        (None, None) => unreachable!("the command line asks for one of the two"),
    }
}

/// An image knows its stack; the one on the command line must be the same.
fn check_stack(asked: &str, image: &Image, data: Option<&Path>) -> Result<(), Failure> {
    let kept = StackConfig::from_text("image", &image.description().stack_toml, &[])?;
    let asked_name = StackConfig::load(asked, &[])?.name;
    if kept.name != asked_name {
        let data = data.map_or(String::new(), |data| data.display().to_string());
        return Err(format!(
            "{data}: the image was created for the stack `{}`, not `{asked_name}`",
            kept.name
        )
        .into());
    }
    Ok(())
}

fn open_image(image: Image, direct: DirectArg, server: &Server) -> Result<Served, Failure> {
    let direct = match direct {
        DirectArg::Auto => DirectIo::Auto,
        DirectArg::On => DirectIo::On,
        DirectArg::Off => DirectIo::Off,
    };
    let config = StackConfig::from_text("image", &image.description().stack_toml, &[])?;
    let plan = Plan::new(&config, &image_options())?;
    let mut built = plan.build_on(
        Some(plan.blocks().bytes()),
        None,
        ContentKind::Counted,
        &mut |disk: &DiskConfig, model| {
            let path = match &disk.backing {
                Some(path) => PathBuf::from(path),
                None => image.node_path(&disk.name).ok_or_else(|| {
                    ConfigError::words(format!("the image has no disk `{}`", disk.name))
                })?,
            };
            let file = FileDisk::open(&path, model.geometry().clone(), direct, server.waker())
                .map_err(|error| ConfigError::words(error.to_string()))?;
            Ok(Box::new(MeasuredDisk::new(
                Box::new(file),
                model.statistics(),
            )))
        },
    )?;
    if !image.layer_states().is_empty() {
        built
            .stack
            .restore(image.layer_states())
            .map_err(|error| format!("the image is damaged: {error}"))?;
    }
    Ok(Served {
        config,
        built,
        image: Some(image),
    })
}

/// The folder for the contents of emulated drives. They start as zeroes each time, because what
/// the translation knew of them is gone.
fn make_contents_dir(folder: &Path) -> Result<(), Failure> {
    let named = |error| format!("{}: {error}", folder.display());
    if folder.join("state").exists() {
        return Err(format!(
            "{}: an image is kept there; emulated drives need a folder of their own",
            folder.display()
        )
        .into());
    }
    std::fs::create_dir_all(folder).map_err(named)?;
    for entry in std::fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "contents")
        {
            std::fs::remove_file(&path).map_err(named)?;
        }
    }
    Ok(())
}

fn emulate(args: &ServeArgs) -> Result<Served, Failure> {
    if args.scale == 0 {
        return Err("--scale 0: accepted: 1 or more".into());
    }
    let config = stack_with_settings(&args.stack, &args.set)?;
    let options = BuildOptions {
        seed: IMAGE_SEED,
        size_bytes: args.size.as_deref().map(parse_size).transpose()?,
        scale: args.scale,
        trim_disks: false,
        contents_dir: args.data.clone(),
        durability: None,
    };
    let plan = Plan::new(&config, &options)?;
    if let Some(folder) = &args.data {
        make_contents_dir(folder)?;
    }
    let built = plan.build(Some(plan.blocks().bytes()), None, ContentKind::Bytes)?;
    Ok(Served {
        config,
        built,
        image: None,
    })
}
