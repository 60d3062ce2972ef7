//! The command that is run for each event. It is started and never waited for.

use super::OnEvent;
use super::words::Event;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Commands that run at once. Further events wait until one of these has ended.
pub const COMMANDS_RUNNING_MAX: usize = 32;
/// Events that wait for their command; those of one kind, node and member wait as one. Further ones have
/// none.
pub const COMMANDS_WAITING_MAX: usize = 64;

/// Every variable that a command may be given. One that is not is taken from it.
const VARIABLES: [&str; 15] = [
    "IMBREX_EVENT",
    "IMBREX_NODE",
    "IMBREX_MEMBER",
    "IMBREX_SPARE",
    "IMBREX_DETAIL",
    "IMBREX_STACK",
    "IMBREX_IMAGE",
    "IMBREX_COUNT",
    "IMBREX_IS_WHOLE",
    "IMBREX_WRONG",
    "IMBREX_REPAIRED",
    "IMBREX_UNREADABLE",
    "IMBREX_BLOCK",
    "IMBREX_IS_REPAIRED",
    "IMBREX_RESYNCED_BYTES",
];

/// How a line of the log is written.
type Write<'a> = &'a mut dyn FnMut(&str);

/// The newest of events that are alike, and how many there are.
struct Waiting {
    event: Event,
    count: u64,
}

/// Runs the command.
pub(super) struct EventCommand {
    on_event: OnEvent,
    running: Vec<(Child, String)>,
    waiting: VecDeque<Waiting>,
    /// Events without a command since that was last said.
    left_out: u64,
    /// That the command does not work is said once, until it does.
    is_failure_told: bool,
}

impl EventCommand {
    pub fn new(on_event: OnEvent) -> EventCommand {
        EventCommand {
            on_event,
            running: Vec::new(),
            waiting: VecDeque::new(),
            left_out: 0,
            is_failure_told: false,
        }
    }

    /// True while a command runs or an event waits for its own.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty() || self.has_waiting()
    }

    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Runs the command for an event that stands for `count`, now or when there is room.
    pub fn run(&mut self, event: Event, count: u64, write: Write<'_>) {
        self.look(write);
        if self.running.len() < COMMANDS_RUNNING_MAX && self.waiting.is_empty() {
            return self.start(&event, count, write);
        }
        if self.waiting.is_empty() {
            write(&format!(
                "--on-event: {COMMANDS_RUNNING_MAX} commands run and have not ended; further events wait \
                 for that, those of one kind, node and member as one"
            ));
        }
        let has_room = self.waiting.len() < COMMANDS_WAITING_MAX;
        let alike = self.waiting.iter_mut().find(|it| {
            (it.event.word, &it.event.node, &it.event.member)
                == (event.word, &event.node, &event.member)
        });
        match alike {
            Some(alike) => {
                alike.count += count;
                alike.event = event;
            }
            None if has_room => {
                self.waiting.push_back(Waiting { event, count });
            }
            None => self.left_out += count,
        }
    }

    /// Looks which commands have ended, and starts those that wait.
    pub fn look(&mut self, write: Write<'_>) {
        let mut running = std::mem::take(&mut self.running);
        running.retain_mut(|(child, what)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) if status.success() => {
                self.is_failure_told = false;
                false
            }
            Ok(Some(status)) => {
                self.tell_failure(&format!("the command for {what} ended with {status}"), write);
                false
            }
            // It is nobody's child any more.
            Err(_) => false,
        });
        self.running = running;
        while self.running.len() < COMMANDS_RUNNING_MAX
            && let Some(Waiting { event, count }) = self.waiting.pop_front()
        {
            self.start(&event, count, write);
        }
        if self.waiting.is_empty() {
            self.tell_left_out(write);
        }
    }

    /// Looks for the last time: what still waits gets no command.
    pub fn end(&mut self, write: Write<'_>) {
        self.look(write);
        let waiting = std::mem::take(&mut self.waiting);
        self.left_out += waiting.iter().map(|it| it.count).sum::<u64>();
        self.tell_left_out(write);
    }

    fn tell_left_out(&mut self, write: Write<'_>) {
        match std::mem::take(&mut self.left_out) {
            0 => {}
            count => write(&format!("--on-event: events for which no command was run: {count}")),
        }
    }

    fn tell_failure(&mut self, words: &str, write: Write<'_>) {
        if !std::mem::replace(&mut self.is_failure_told, true) {
            write(&format!("--on-event: {words}; this is said once until a command ends well"));
        }
    }

    fn start(&mut self, event: &Event, count: u64, write: Write<'_>) {
        match self.spawn(event, count) {
            Ok(child) => {
                let what = format!("`{}` of node `{}`", event.word, event.node);
                self.running.push((child, what));
            }
            Err(error) => self.tell_failure(&format!("cannot run the command: {error}"), write),
        }
    }

    fn spawn(&self, event: &Event, count: u64) -> io::Result<Child> {
        let OnEvent { command, stack, image } = &self.on_event;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        for variable in VARIABLES {
            shell.env_remove(variable);
        }
        let numbers = event.numbers.iter().map(|(name, value)| (*name, value.to_string()));
        let given: [(&str, Option<OsString>); 8] = [
            ("IMBREX_EVENT", Some(event.word.into())),
            ("IMBREX_NODE", Some(event.node.clone().into())),
            ("IMBREX_MEMBER", event.member.clone().map(OsString::from)),
            ("IMBREX_SPARE", event.spare.clone().map(OsString::from)),
            ("IMBREX_DETAIL", Some(event.detail.clone().into())),
            ("IMBREX_STACK", Some(stack.into())),
            ("IMBREX_IMAGE", image.as_ref().map(OsString::from)),
            ("IMBREX_COUNT", Some(count.to_string().into())),
        ];
        shell.envs(given.into_iter().filter_map(|(name, value)| Some((name, value?))));
        shell.envs(numbers);
        // Standard output is that of the report. Ctrl-C at the terminal is for the server.
        shell.stdin(Stdio::null()).stdout(io::stderr()).stderr(Stdio::inherit()).process_group(0);
        shell.spawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, Instant};

    fn event(word: &'static str, number: u64) -> Event {
        Event {
            word,
            node: "a".into(),
            member: None,
            spare: None,
            detail: "something happened".into(),
            numbers: vec![("IMBREX_BLOCK", number)],
        }
    }

    fn command(text: &str) -> EventCommand {
        let (command, stack) = (text.to_owned(), "s".to_owned());
        EventCommand::new(OnEvent { command, stack, image: None })
    }

    fn look_until(
        command: &mut EventCommand,
        lines: &mut Vec<String>,
        is_done: impl Fn(&EventCommand, &[String]) -> bool,
    ) {
        let since = Instant::now();
        while !is_done(command, lines) {
            assert!(since.elapsed() < Duration::from_secs(60), "{lines:?}");
            command.look(&mut |line| lines.push(line.to_owned()));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Commands that run until a file is there, so that a test says when they end.
    #[test]
    fn events_wait_as_one_while_all_commands_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let (go, out) = (dir.path().join("go"), dir.path().join("out"));
        let (go_at, out_at) = (go.display(), out.display());
        let mut command = command(&format!(
            "while ! test -e {go_at}; do sleep 0.05; done; echo $IMBREX_EVENT $IMBREX_COUNT $IMBREX_BLOCK >> {out_at}"
        ));
        let mut lines = Vec::new();
        for number in 0..COMMANDS_RUNNING_MAX as u64 + 5 {
            command.run(event("scrub-found", number), 1, &mut |line| lines.push(line.to_owned()));
        }
        command.run(event("disk-lost", 0), 1, &mut |line| lines.push(line.to_owned()));
        assert_eq!(command.running.len(), COMMANDS_RUNNING_MAX);
        assert_eq!(command.waiting.len(), 2);
        assert_eq!(lines.len(), 1, "one line: {lines:?}");
        fs::write(&go, "").expect("a file");
        look_until(&mut command, &mut lines, |command, _| !command.is_busy());
        let told = fs::read_to_string(&out).expect("what commands wrote");
        assert_eq!(told.lines().count(), COMMANDS_RUNNING_MAX + 2);
        assert!(told.contains("scrub-found 5 36\n") && told.contains("disk-lost 1 0\n"), "{told}");
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn a_command_that_does_not_work_is_said_once_and_an_end_waits_for_none() {
        let mut command = command("exit 3");
        let mut lines = Vec::new();
        for _ in 0..3 {
            command.run(event("disk-lost", 0), 1, &mut |line| lines.push(line.to_owned()));
        }
        look_until(&mut command, &mut lines, |command, _| !command.is_busy());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("`disk-lost` of node `a` ended with exit status: 3"));
        command.on_event.command = "exec sleep 100".into();
        let since = Instant::now();
        for number in 0..COMMANDS_RUNNING_MAX as u64 + 3 {
            command.run(event("disk-lost", number), 1, &mut |line| lines.push(line.to_owned()));
        }
        command.end(&mut |line| lines.push(line.to_owned()));
        assert!(since.elapsed() < Duration::from_secs(50));
        let last = lines.last().expect("a line");
        assert_eq!(last, "--on-event: events for which no command was run: 3");
        for (child, _) in &mut command.running {
            child.kill().expect("its own child");
            child.wait().expect("a status");
        }
    }

    #[test]
    fn a_text_that_no_command_can_be_is_one_line() {
        let mut command = command("true\0");
        let mut lines = Vec::new();
        for _ in 0..2 {
            command.run(event("disk-lost", 0), 1, &mut |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("--on-event: cannot run the command: "), "{lines:?}");
        assert!(!command.is_busy());
    }
}
