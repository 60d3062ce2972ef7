//! `imbrex control`: gives a command to a node of a served stack and waits for its end.

use super::console::{complain, emit};
use crate::args::{ControlArgs, NodeCommand};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use imbrex_core::units::BLOCK_BYTES;
use imbrex_report::{device_status, human_bytes, node_status};
use imbrex_serve::remote::is_remote;
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What an NBD server says first.
const NBD_GREETING: &[u8] = b"NBDMAGIC";
/// The exit status of a command line that cannot be.
const WRONG_USAGE: u8 = 2;
/// Bits of an id that every reader of JSON keeps.
const ID_BITS: u32 = 53;

/// Gives the command and waits.
pub fn run(args: &ControlArgs) -> Result<ExitCode, Failure> {
    if args.node.is_none() && !matches!(args.command, NodeCommand::Status) {
        complain(
            "this command is for one node; accepted: imbrex control SOCKET NODE COMMAND \
             (`imbrex control SOCKET status` names the nodes)",
        );
        return Ok(ExitCode::from(WRONG_USAGE));
    }
    let socket = args.socket.display();
    let named = |error| format!("{socket}: {error}");
    let mut stream = UnixStream::connect(&args.socket).map_err(|error| {
        format!(
            "cannot reach {socket}: {error}; accepted: the control socket of an `imbrex serve` that runs"
        )
    })?;
    let request = request(args)?;
    stream.write_all(format!("{request}\n").as_bytes()).map_err(named)?;
    let mut lines = BufReader::new(stream);
    let mut meter = Meter::new();
    loop {
        let mut line = Vec::new();
        if starts_as_device(&mut lines).map_err(named)? {
            return Err(format!(
                "{socket} is the socket of a device; commands are taken at {socket}.control"
            )
            .into());
        }
        let count = lines.read_until(b'\n', &mut line).map_err(named)?;
        if count == 0 {
            return Err(format!(
                "{socket}: the server has ended and said nothing of the command; `status` tells after \
                 the next start what came of it"
            )
            .into());
        }
        let answer: Value = serde_json::from_slice(&line)
            .map_err(|error| format!("{socket}: this is no answer to a command: {error}"))?;
        if let Some(progress) = answer.get("progress") {
            meter.show(progress);
            continue;
        }
        meter.end();
        return tell(args, &answer);
    }
}

/// True when what answers is an NBD server.
fn starts_as_device(lines: &mut BufReader<UnixStream>) -> std::io::Result<bool> {
    Ok(lines.fill_buf()?.starts_with(NBD_GREETING))
}

/// The request as the socket takes it.
fn request(args: &ControlArgs) -> Result<Value, Failure> {
    let id = args.id.unwrap_or_else(|| {
        // Its keys are random, and so is what it makes of nothing.
        RandomState::new().build_hasher().finish() >> (u64::BITS - ID_BITS)
    });
    let (word, key, value) = match &args.command {
        NodeCommand::Status => ("status", None, Value::Null),
        NodeCommand::Fail { force } => ("fail", Some("force"), json!(force.then_some(true))),
        NodeCommand::Replace { path } => {
            let path = path.as_deref().map(absolute).transpose()?;
            ("replace", Some("path"), json!(path))
        }
        NodeCommand::Rebuild(args) => ("rebuild", Some("rate"), json!(args.rate)),
        NodeCommand::Scrub(args) => ("scrub", Some("rate"), json!(args.rate)),
        NodeCommand::Off => ("off", None, Value::Null),
        NodeCommand::On => ("on", None, Value::Null),
        NodeCommand::FailReads { blocks } => ("fail-reads", Some("blocks"), json!(blocks)),
        NodeCommand::FailWrites { blocks } => ("fail-writes", Some("blocks"), json!(blocks)),
        NodeCommand::Slow { ms } => ("slow", Some("ms"), json!(ms)),
        NodeCommand::Hang => ("hang", None, Value::Null),
        NodeCommand::Corrupt { blocks } => ("corrupt", Some("blocks"), json!(blocks)),
        NodeCommand::Heal => ("heal", None, Value::Null),
    };
    let mut request = json!({"id": id, "command": word});
    let node = args.node.as_ref().map(|node| ("node", json!(node)));
    let value = key.filter(|_| !value.is_null()).map(|key| (key, value));
    for (key, value) in node.into_iter().chain(value) {
        request[key] = value;
    }
    Ok(request)
}

/// A path as the server must see it, which may have been started elsewhere.
fn absolute(path: &Path) -> Result<String, Failure> {
    if let Some(uri) = path.to_str().filter(|text| is_remote(text)) {
        return Ok(uri.to_owned());
    }
    let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = path
        .to_str()
        .ok_or_else(|| format!("{}: accepted: a path of Unicode characters", path.display()))?;
    Ok(text.to_owned())
}

/// Prints how a command has ended.
fn tell(args: &ControlArgs, answer: &Value) -> Result<ExitCode, Failure> {
    let error = answer.get("error").and_then(Value::as_str);
    if args.json {
        emit(&format!("{answer}\n"));
        let is_done = error.is_none();
        return Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if let Some(words) = error {
        return Err(words.into());
    }
    let told = &answer["ok"];
    emit(&match (&args.command, &args.node) {
        (NodeCommand::Status, Some(_)) => node_status(told),
        (NodeCommand::Status, None) => device_status(told),
        (_, node) => format!("{}: done\n", node.as_deref().unwrap_or_default()),
    });
    Ok(ExitCode::SUCCESS)
}

/// Shows a person at a terminal how far a command has come.
struct Meter {
    is_seen: bool,
    has_shown: bool,
}

impl Meter {
    fn new() -> Meter {
        Meter { is_seen: std::io::stderr().is_terminal(), has_shown: false }
    }

    fn show(&mut self, progress: &Value) {
        let blocks = |key: &str| progress[key].as_u64().unwrap_or_default();
        let (done, total) = (blocks("done"), blocks("total"));
        if !self.is_seen {
            return;
        }
        let percent = 100.0 * done as f64 / (total.max(1)) as f64;
        let bytes = |blocks: u64| human_bytes(blocks.saturating_mul(BLOCK_BYTES));
        // Nobody is left to tell when it cannot be written.
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[K  {percent:.1} %: {} of {}",
            bytes(done),
            bytes(total)
        );
        self.has_shown = true;
    }

    fn end(&self) {
        if self.has_shown {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
