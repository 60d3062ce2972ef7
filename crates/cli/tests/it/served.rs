//! `imbrex serve` as a process, and a client for it.

use crate::client::{Client, DISCONNECT};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What can be done about a disk that is refused by its label.
pub const WAY_OUT: &str = "put the right disk back; or take this one away, so that it counts as lost where the stack can do \
                           without it; `--read-only --force` shows what is there";

/// Longer than a start or an end takes on a loaded machine, shorter than a test that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program under test.
pub fn imbrex() -> Command {
    Command::new(env!("CARGO_BIN_EXE_imbrex"))
}

/// Runs the program to its end, which must come soon.
pub fn run(arguments: &[&str]) -> Output {
    let patience = PATIENCE.as_secs().to_string();
    let mut command = Command::new("timeout");
    command.arg(patience).arg(imbrex().get_program());
    command.args(arguments).output().expect("the program")
}

/// The status of a command that has said this: 2 where the message begins with an option, because it was called
/// wrongly, and 1 where a file that an option names could not be had.
pub fn status_of(said: &str) -> Option<i32> {
    let of_option = |line: &str| line.starts_with("imbrex: --") && !line.contains("(os error");
    Some(if said.lines().any(of_option) { 2 } else { 1 })
}

/// What a program that failed said, without the line end; panics when it did not fail.
pub fn failure(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_string();
    assert_eq!(output.status.code(), status_of(&said), "{said}");
    assert!(output.stdout.is_empty(), "a failure prints no report");
    said
}

/// A data directory and a socket path that are gone when the test ends.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        Place { dir }
    }

    pub fn path(&self, name: &str) -> String {
        let path = self.dir.path().join(name);
        path.to_str().expect("a plain path").to_string()
    }

    pub fn data(&self) -> String {
        self.path("data")
    }

    pub fn socket(&self) -> String {
        self.path("s")
    }

    /// `imbrex create`, which must succeed.
    pub fn create(&self, stack: &str, size: &str, set: &[&str]) {
        let data = self.data();
        let mut arguments = vec!["create", stack, "--data", &data, "--size", size];
        arguments.extend(set.iter().flat_map(|setting| ["--set", setting]));
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }

    /// `imbrex serve` on the data directory and the socket, which must become ready.
    pub fn serve(&self, stack: &str) -> Served {
        let (data, socket) = (self.data(), self.socket());
        let arguments = ["serve", stack, "--data", &data, "--socket", &socket];
        Served::start(imbrex().args(arguments), Path::new(&socket))
    }

    /// `imbrex serve` on the data directory and the socket, which must fail; what it says.
    pub fn refused(&self, stack: &str) -> String {
        let (data, socket) = (self.data(), self.socket());
        failure(&run(&["serve", stack, "--data", &data, "--socket", &socket]))
    }
}

/// A server process.
pub struct Served {
    child: Child,
    socket: PathBuf,
    messages: PathBuf,
}

impl Served {
    /// Starts a server and waits until it says that it is ready.
    pub fn start(command: &mut Command, socket: &Path) -> Served {
        let messages = socket.with_extension("messages");
        let stderr = File::create(&messages).expect("a file");
        command.stdout(Stdio::piped()).stderr(stderr);
        let child = command.spawn().expect("the program");
        let socket = socket.to_owned();
        let mut served = Served { child, socket, messages };
        let since = Instant::now();
        while !served.said().contains("imbrex: serving ") {
            let ended = served.child.try_wait().expect("a status");
            assert!(ended.is_none(), "ended at once: {}", served.said());
            assert!(since.elapsed() < PATIENCE, "not ready: {}", served.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        served
    }

    /// What the server has said on standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.messages).unwrap_or_default()
    }

    /// A client in the transmission phase.
    pub fn client(&self) -> Client {
        Client::ready(&self.socket)
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill").success(), "the server has ended");
    }

    /// Waits for the end; the exit status and the one run of the report, null without one.
    pub fn wait(mut self) -> (Option<i32>, serde_json::Value) {
        let mut text = String::new();
        let mut output = self.child.stdout.take().expect("a pipe");
        output.read_to_string(&mut text).expect("a report");
        let status = self.child.wait().expect("a status");
        let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        (status.code(), report["runs"][0].clone())
    }

    /// The same, and what the server has said on standard error until its end.
    pub fn wait_and_said(self) -> (String, (Option<i32>, serde_json::Value)) {
        let messages = self.messages.clone();
        let ended = self.wait();
        let said = std::fs::read_to_string(messages).unwrap_or_default();
        (said, ended)
    }

    /// Stops the server as `kill` does; the one run of its report.
    pub fn stop(self) -> serde_json::Value {
        self.signal("TERM");
        let (said, (status, run)) = self.wait_and_said();
        assert_eq!(status, Some(0), "{said}");
        run
    }

    /// Ends the server without warning.
    pub fn kill_nine(mut self) {
        self.child.kill().expect("a running server");
        self.child.wait().expect("a status");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Ended already unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a connection in order.
pub fn disconnect(mut client: Client) {
    client.request(DISCONNECT, 0, 0, 0, 0);
}
