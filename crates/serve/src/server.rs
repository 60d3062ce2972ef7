//! A server: a socket, its clients, and the loop that runs a stack for them.

use crate::clock::{Poller, Waker, WallClock, WallTime};
use crate::connections::{Connections, LISTENER, Observer, SIGNALS, WAKER};
use crate::control::{Commands, Control, ControlSocket};
use crate::events::{Events, Names, OnEvent, SharedEvents};
use crate::listener::{Listen, ListenError, Listener};
use crate::nbd::handshake::Export;
use crate::signals::{say, set_on_signals};
use imbrex_core::buffer::{BufferSlice, Buffers};
use imbrex_core::engine::{Engine, Frontend};
use imbrex_core::error::IoError;
use imbrex_core::extent::Extent;
use imbrex_core::label::{LabelledOpenError, Labels};
use imbrex_core::lifecycle::{OpenError, Start};
use imbrex_core::notice::Notice;
use imbrex_core::operation::{Completion, Operation, Tag};
use imbrex_core::stack::{Arrival, NodeId, Stack};
use imbrex_core::units::{BLOCK_BYTES, Instant};
use rustix::fd::AsFd;
use std::cell::RefCell;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Why a server cannot run, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody can connect.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refused something a server needs.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The command to be run beside the server could not be started.
    #[error("cannot run `{command}`: {source}")]
    Run {
        /// The command.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// At the end, what clients have written could not all be made durable.
    #[error("the flush at the end failed ({0}): writes that no earlier flush covers may be lost")]
    LastFlush(IoError),
    /// At the end, a layer could not write down its state; its journal still has all of it.
    #[error("closing failed ({error}): recovery will do the rest at the next start")]
    Close {
        /// The layer.
        node: NodeId,
        /// What went wrong.
        error: IoError,
    },
}

/// Stops a server from any thread, as a signal would.
#[derive(Clone, Debug)]
pub struct StopHandle {
    stop: Arc<AtomicBool>,
    waker: Waker,
}

impl StopHandle {
    /// The server takes no further request, answers those it has, flushes and returns.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// A command that runs beside a server and whose end stops it.
#[derive(Debug)]
pub struct RunningCommand {
    thread: JoinHandle<io::Result<ExitStatus>>,
}

impl RunningCommand {
    /// Waits for the command and returns how it ended.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub fn wait(self) -> io::Result<ExitStatus> {
        self.thread.join().expect("the thread only waits")
    }
}

/// A socket that clients can connect to, and everything the loop needs, before it runs.
pub struct Server {
    poller: Rc<Poller>,
    time: WallTime,
    waker: Waker,
    stop: Arc<AtomicBool>,
    listener: Listener,
    signals: Option<UnixStream>,
    observer: Option<Observer>,
    control: Option<ControlSocket>,
    commands: Commands,
    on_event: Option<OnEvent>,
    /// The names of the disks, by their places.
    disks: Vec<String>,
}

impl Server {
    /// Opens the socket. Clients that connect wait until [`run`](Self::run).
    ///
    /// # Errors
    /// When the address is taken or not acceptable.
    pub fn bind(listen: &Listen) -> Result<Server, ServeError> {
        let poller = Poller::new().map_err(system("create an epoll instance"))?;
        let waker = poller.waker(WAKER).map_err(system("create an eventfd"))?;
        let listener = Listener::bind(listen)?;
        poller.add(listener.socket(), LISTENER).map_err(system("watch the socket"))?;
        Ok(Server {
            poller: Rc::new(poller),
            time: WallTime::start(),
            waker,
            stop: Arc::new(AtomicBool::new(false)),
            listener,
            signals: None,
            observer: None,
            control: None,
            commands: Commands::default(),
            disks: Vec::new(),
            on_event: None,
        })
    }

    /// The address in the form NBD clients take.
    pub fn uri(&self) -> String {
        self.listener.uri()
    }

    /// For disks whose threads must be able to end the wait of the loop.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Stops the server from another thread.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { stop: Arc::clone(&self.stop), waker: self.waker.clone() }
    }

    /// Has every request told to `observer`.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// Opens a socket for commands to the nodes of the stack, with access for its owner alone. Clients
    /// that connect wait until [`run`](Self::run).
    ///
    /// # Errors
    /// When the path is taken or not acceptable.
    pub fn bind_control(&mut self, path: &Path) -> Result<(), ServeError> {
        self.control = Some(ControlSocket::bind(path, &self.poller)?);
        Ok(())
    }

    /// Says what commands can be about.
    pub fn take_commands(&mut self, commands: Commands) {
        self.commands = commands;
    }

    /// Has a command run for each event: what a person must know of the nodes and their files.
    pub fn run_on_event(&mut self, on_event: OnEvent) {
        self.on_event = Some(on_event);
    }

    /// From now on SIGINT, SIGTERM and SIGHUP stop the server, and a further SIGINT or SIGTERM ends
    /// the process at once, so that data may be lost as in a crash ([`set_on_signals`]).
    ///
    /// # Errors
    /// When the system refuses.
    pub fn stop_on_signals(&mut self) -> Result<(), ServeError> {
        let refused =
            |source| ServeError::System { action: "catch SIGINT, SIGTERM and SIGHUP", source };
        let (reader, writer) = UnixStream::pair().map_err(refused)?;
        set_on_signals(&self.stop, |signal| {
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
            Ok(())
        })?;
        self.poller.add(&reader, SIGNALS).map_err(|errno| refused(errno.into()))?;
        self.signals = Some(reader);
        Ok(())
    }

    /// Has input of `source` end the waits of the loop.
    pub(crate) fn watch(
        &self,
        source: impl AsFd,
        token: u64,
        action: &'static str,
    ) -> Result<(), ServeError> {
        self.poller.add(source, token).map_err(system(action))
    }

    /// Starts a shell command that finds the server in `$uri` and, on a Unix socket,
    /// `$unixsocket`, and the socket for commands, if there is one, in `$control`. Its end stops the
    /// server.
    ///
    /// # Errors
    /// When there is no shell.
    pub fn run_command(&self, command: &str) -> Result<RunningCommand, ServeError> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).env("uri", self.uri());
        match self.listener.unix_path() {
            Some(path) => shell.env("unixsocket", path),
            None => shell.env_remove("unixsocket"),
        };
        match self.control.as_ref().and_then(ControlSocket::path) {
            Some(path) => shell.env("control", path),
            None => shell.env_remove("control"),
        };
        let mut child = shell
            .spawn()
            .map_err(|source| ServeError::Run { command: command.to_owned(), source })?;
        let stop = self.stop_handle();
        let thread = thread::spawn(move || {
            let status = child.wait();
            stop.stop();
            status
        });
        Ok(RunningCommand { thread })
    }

    /// Lets the layers come up, before [`run`](Self::run). Clients that connect wait.
    ///
    /// # Errors
    /// When a layer cannot; says which node it is.
    pub fn open(&self, engine: &mut Engine, start: Start) -> Result<(), (NodeId, OpenError)> {
        engine.open(&mut self.clock(), start)
    }

    /// Compares the labels of the disks, moves their count, and lets the layers come up, before
    /// [`run`](Self::run). `seed` is a new random number.
    ///
    /// # Errors
    /// As [`Engine::open_labelled`] says.
    pub fn open_labelled(
        &self,
        engine: &mut Engine,
        start: Start,
        labels: Labels,
        seed: u64,
    ) -> Result<(), LabelledOpenError> {
        engine.open_labelled(&mut self.clock(), start, labels, seed)
    }

    /// Says how the disks are called, by their places: what is told of their labels names them.
    pub fn name_disks(&mut self, disks: Vec<String>) {
        self.disks = disks;
    }

    fn clock(&self) -> WallClock {
        WallClock::new(self.time, Rc::clone(&self.poller))
    }

    /// Serves until the server is stopped, then answers what has arrived, waits until nothing is
    /// in flight, flushes and lets the layers go down. The socket is gone when it returns. `watch` sees the stack after
    /// every instant at which something happened.
    ///
    /// The first of the exports is the device, which clients find under the empty name too; further
    /// ones are parts of it.
    ///
    /// The engine's own bound on requests is lifted: the clients' bounds are tighter. Panics when
    /// there is no export, or one that is not on the stack or does not consist of whole blocks.
    ///
    /// # Errors
    /// When the last flush fails or a layer cannot go down in order.
    pub fn run(
        mut self,
        engine: &mut Engine,
        exports: Vec<Export>,
        watch: &mut dyn FnMut(Instant, &Stack),
    ) -> Result<(), ServeError> {
        let blocks = engine.stack.geometry().blocks;
        for Export { offset, bytes, .. } in &exports {
            let is_whole = offset.is_multiple_of(BLOCK_BYTES) && bytes.is_multiple_of(BLOCK_BYTES);
            let end = offset.checked_add(*bytes);
            assert!(
                is_whole && end.is_some_and(|end| end <= blocks.bytes()),
                "an export of {bytes} bytes at {offset} over {blocks:?}"
            );
        }
        let mut clock = self.clock();
        engine.in_flight_max = u32::MAX;
        let names = Names::of(&engine.stack, &self.commands.nodes);
        let events = Events::new(names, self.commands.files.clone(), self.on_event.take());
        let events = Rc::new(RefCell::new(events));
        let socket = self.control.as_mut().map(ControlSocket::take);
        let control = Control::new(Rc::clone(&self.poller), socket, self.commands);
        let mut connections = Connections::new(
            Rc::clone(&self.poller),
            self.time,
            self.listener.take_socket(),
            exports.into(),
            self.stop,
            self.observer.take(),
            control,
        )
        .with_events(Rc::clone(&events));
        engine.run(&mut clock, &mut connections, watch);
        let mut flush = LastFlush { stage: FlushStage::Pending, events: Rc::clone(&events) };
        engine.run(&mut clock, &mut flush, watch);
        let result = match flush.stage {
            FlushStage::Done(Err(error)) => Err(ServeError::LastFlush(error)),
            _ => close(engine, &mut clock, &self.disks),
        };
        engine.stack.tell_notices(self.time.now(), &mut flush);
        events.borrow_mut().end();
        result
    }
}

/// Lets the layers go down, then moves the count of the labels, if there are some. A disk without its new label is no
/// error: all that was written is there, and the next start takes it as it is.
fn close(engine: &mut Engine, clock: &mut WallClock, disks: &[String]) -> Result<(), ServeError> {
    let failed = |(node, error)| ServeError::Close { node, error };
    for (disk, error) in engine.close_labelled(clock).map_err(failed)? {
        let node = disks.get(disk).map_or("", String::as_str);
        say(&format!(
            "node `{node}`: its label cannot be written: {error}; to the other disks it was away from \
             this stop on"
        ));
    }
    Ok(())
}

fn system(action: &'static str) -> impl Fn(rustix::io::Errno) -> ServeError {
    move |errno| ServeError::System { action, source: errno.into() }
}

/// A source of one request: the flush at the end.
struct LastFlush {
    stage: FlushStage,
    events: SharedEvents,
}

enum FlushStage {
    Pending,
    InFlight,
    Done(Result<(), IoError>),
}

impl Frontend for LastFlush {
    fn next_arrival(&self) -> Option<Instant> {
        matches!(self.stage, FlushStage::Pending).then_some(Instant::ZERO)
    }

    fn poll(&mut self, _now: Instant, _buffers: &mut Buffers) -> Option<Arrival> {
        if !matches!(self.stage, FlushStage::Pending) {
            return None;
        }
        self.stage = FlushStage::InFlight;
        Some(Arrival {
            tag: Tag(0),
            operation: Operation::Flush,
            extent: Extent::EMPTY,
            buffer: BufferSlice::EMPTY,
        })
    }

    fn reply(&mut self, _now: Instant, completion: Completion, _buffers: &mut Buffers) {
        self.stage = FlushStage::Done(completion.result);
    }

    fn finished(&self) -> bool {
        matches!(self.stage, FlushStage::Done(_))
    }

    fn notice(&mut self, now: Instant, node: NodeId, notice: Notice) {
        self.events.borrow_mut().notice(now, node, notice);
    }

    fn notices_dropped(&mut self, _now: Instant, count: u64) {
        self.events.borrow_mut().dropped(count);
    }
}
