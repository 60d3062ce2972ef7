//! The life of a server: how it ends, and what is certain then.

use crate::client::*;
use crate::support::{
    Control, TestDisk, TestServer, engine_over, eventually, run, serve, start_program,
};
use imbrex_core::buffer::Buffers;
use imbrex_core::disk::{Disk, DiskCompletion, DiskOp, Geometry};
use imbrex_core::error::IoError;
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::operation::Operation;
use imbrex_core::units::{Duration, Instant};
use imbrex_serve::connections::RequestEvent;
use imbrex_serve::listener::Listen;
use imbrex_serve::server::Server;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Longer than a server takes to look at what has happened.
const STARTED: std::time::Duration = std::time::Duration::from_secs(5);

/// The socket is there before the layers are up. Their waits are told, once, that a client has
/// come; nobody takes clients in until the server runs.
#[test]
fn a_client_that_connects_while_the_layers_come_up_is_greeted() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let server = Server::bind(&Listen::Unix(socket.clone())).expect("a free path");
    let stop = server.stop_handle();
    let mut client = Client::connect(&socket);
    let mut engine = engine_over(Box::new(TestDisk::new(8, 0, Control::default())));
    let start = Start::Format(Uuid([0; 16]));
    server.open(&mut engine, start).expect("it opens");
    let waiting = std::thread::spawn(move || {
        let patience = Some(STARTED);
        client.stream.set_read_timeout(patience).expect("a timeout");
        let mut greeting = [0; 18];
        let greeted = client.stream.read_exact(&mut greeting);
        stop.stop();
        greeted
    });
    run(server, engine).expect("a clean end");
    waiting.join().expect("a client").expect("a greeting");
}

#[test]
fn a_server_that_is_stopped_while_the_layers_come_up_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = Server::bind(&Listen::Unix(dir.path().join("s"))).expect("a free path");
    let stop = server.stop_handle();
    stop.stop();
    let mut engine = engine_over(Box::new(TestDisk::new(8, 0, Control::default())));
    let start = Start::Format(Uuid([0; 16]));
    server.open(&mut engine, start).expect("it opens");
    let (ended, end) = channel();
    let watching = std::thread::spawn(move || {
        let in_time = end.recv_timeout(STARTED).is_ok();
        stop.stop();
        in_time
    });
    run(server, engine).expect("a clean end");
    // Fails when the other thread has given up.
    let _ = ended.send(());
    assert!(watching.join().expect("a thread"), "it waited");
}

#[test]
fn stopping_answers_what_has_arrived_and_flushes() {
    let (server, control) = TestServer::in_memory(64, 500);
    let mut idle = Client::ready(&server.socket);
    let mut haggling = Client::haggling(&server.socket);
    let mut half = Client::ready(&server.socket);
    half.request(WRITE, 0, 1, 0, 8192);
    half.send(&[1; 5000]);
    let mut busy = Client::ready(&server.socket);
    control.lock().expect("control").held_block = Some(7);
    for block in 0..16 {
        busy.request(WRITE, 0, block, block * 4096, 4096);
        busy.send(&[9; 4096]);
    }
    eventually("all writes reach the disk", || {
        control.lock().expect("control").operations.len() >= 16
    });
    server.stop.stop();
    assert!(idle.is_closed());
    assert!(haggling.is_closed());
    assert!(half.is_closed());
    control.lock().expect("control").held_block = None;
    let mut cookies: Vec<u64> = (0..16).map(|_| busy.reply()).map(|(_, cookie)| cookie).collect();
    cookies.sort_unstable();
    assert!(cookies.into_iter().eq(0..16));
    assert!(busy.is_closed());
    let socket = server.socket.clone();
    server.join().expect("a clean end");
    assert!(!socket.exists());
    let control = control.lock().expect("control");
    assert_eq!(control.operations.len(), 17, "half a write is none");
    assert_eq!(control.operations[16].operation, Operation::Flush);
}

#[test]
fn a_client_that_takes_no_answer_does_not_keep_a_server_from_ending() {
    let (server, _) = TestServer::in_memory(8192, 0);
    let mut client = Client::ready(&server.socket);
    client.request(READ, 0, 1, 0, 16 << 20);
    eventually("the read is answered", || server.events.lock().expect("events").len() == 2);
    server.stop.stop();
    server.join().expect("a clean end");
}

#[test]
fn tcp_clients_are_served_too() {
    let mut server = Server::bind(&Listen::Tcp("127.0.0.1:0".parse().expect("an address")))
        .expect("a free port");
    server.observe(Box::new(|_| {}));
    let address = server.uri().replace("nbd://", "");
    let stop = server.stop_handle();
    let client = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("a server");
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        stop.stop();
        greeting
    });
    serve(server, Box::new(TestDisk::new(8, 0, Control::default()))).expect("a clean end");
    let greeting = client.join().expect("a client");
    assert_eq!(greeting[..8], NBD_MAGIC.to_be_bytes());
}

#[test]
fn a_command_finds_the_server_and_ends_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("s");
    let output = dir.path().join("out");
    let server = Server::bind(&Listen::Unix(socket.clone())).expect("a free path");
    let command = format!("echo \"$uri $unixsocket\" > {}; exit 7", output.display());
    let expected = format!("{} {}\n", server.uri(), socket.display());
    let running = server.run_command(&command).expect("a shell");
    serve(server, Box::new(TestDisk::new(8, 0, Control::default()))).expect("a clean end");
    assert_eq!(running.wait().expect("a status").code(), Some(7));
    assert_eq!(std::fs::read_to_string(output).expect("the output"), expected);
}

#[test]
fn a_failing_last_flush_is_an_error() {
    let control = Control::default();
    let of_disk = Arc::clone(&control);
    let server = TestServer::over(move |_| Box::new(FailingFlush(TestDisk::new(8, 0, of_disk))));
    server.stop.stop();
    let error = server.join().expect_err("an error").to_string();
    assert!(error.starts_with("the flush at the end failed (no space left below)"), "{error}");
}

/// A disk on which every flush fails.
struct FailingFlush(TestDisk);

impl Disk for FailingFlush {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        self.0.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        let mut completion = self.0.poll(now, buffers)?;
        completion.result = Err(IoError::NoSpace);
        Some(completion)
    }

    fn next_event(&self) -> Option<Instant> {
        self.0.next_event()
    }
}

fn signal(child: &std::process::Child, name: &str) {
    let killed =
        std::process::Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

#[test]
fn a_signal_ends_a_server_in_order() {
    for name in ["INT", "TERM"] {
        let dir = tempfile::tempdir().expect("a directory");
        let mut child = start_program(dir.path(), 16 << 20);
        let socket = dir.path().join("s");
        let mut client = Client::ready(&socket);
        assert_eq!(client.write(0, 4096, &[8; 4096]), 0);
        signal(&child.0, name);
        assert!(client.is_closed());
        assert_eq!(child.0.wait().expect("a status").code(), Some(0), "{name}");
        assert!(!socket.exists());
    }
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = start_program(dir.path(), 16 << 20);
    let mut client = Client::ready(&dir.path().join("s"));
    // An answer that nobody takes keeps the server waiting for some seconds.
    client.request(READ, 0, 1, 0, 8 << 20);
    client.bytes(16);
    signal(&child.0, "TERM");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(child.0.try_wait().expect("a status").is_none(), "it still waits");
    let started = std::time::Instant::now();
    signal(&child.0, "INT");
    assert_eq!(child.0.wait().expect("a status").code(), Some(130));
    assert!(started.elapsed().as_secs() < 3);
}

#[test]
fn paced_completions_come_when_they_are_due() {
    let delay_ns = 2_000_000;
    let server = TestServer::over(move |_| Box::new(Paced::new(delay_ns)));
    let mut client = Client::ready(&server.socket);
    for _ in 0..200 {
        assert_eq!(client.read(0, 4096), Ok(vec![0; 4096]));
    }
    let events = server.events.lock().expect("events");
    let latencies: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            RequestEvent::Answered { latency, .. } => Some(latency.0),
            RequestEvent::Arrived(_) => None,
        })
        .collect();
    assert_eq!(latencies.len(), 200);
    // The machine may be busy with other tests, so only the best of them says what is possible. A
    // delay begins with the turn of the engine that takes the request, which begins a little before
    // the request is there.
    let best = *latencies.iter().min().expect("latencies");
    assert!((delay_ns - 50_000..delay_ns + 150_000).contains(&best), "the best took {best} ns");
}

/// A disk that finishes every operation a fixed time after its submission.
struct Paced {
    disk: TestDisk,
    delay: Duration,
    due: std::collections::VecDeque<Instant>,
}

impl Paced {
    fn new(delay_ns: u64) -> Paced {
        Paced {
            disk: TestDisk::new(8, 0, Control::default()),
            delay: Duration(delay_ns),
            due: Default::default(),
        }
    }
}

impl Disk for Paced {
    fn geometry(&self) -> &Geometry {
        self.disk.geometry()
    }

    fn submit(&mut self, now: Instant, op: DiskOp, buffers: &mut Buffers) {
        self.due.push_back(now + self.delay);
        self.disk.submit(now, op, buffers);
    }

    fn poll(&mut self, now: Instant, buffers: &mut Buffers) -> Option<DiskCompletion> {
        if *self.due.front()? > now {
            return None;
        }
        self.due.pop_front();
        self.disk.poll(now, buffers)
    }

    fn next_event(&self) -> Option<Instant> {
        self.due.front().copied()
    }
}
