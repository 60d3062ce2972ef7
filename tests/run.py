#!/usr/bin/env python3
"""Runs every test of the repository and counts the results in one line.

The parts are: formatting and lints, the Rust tests, and the programs in tests/e2e.

Everything is compiled first and once: the Rust tests and the end-to-end tests use the same build. What does not
compile is one failure, and nothing is run.

An end-to-end test is an executable `tests/e2e/*.py` or `*.sh` (names that start with `_` are
helpers, those with `soak_` run with --soak alone). Exit status 0 means passed, 77 skipped (its last line says why), anything
else failed. It finds the binary in $IMBREX and an empty directory to write to in $IMBREX_TMP.

Two of them run at once, and a test's output comes when it has ended. One that measures time, or takes the whole machine,
has a line `# Alone: ` with the reason: such tests run after the others, one at a time.

A Rust test that cannot run prints a line that starts with `skipped` and returns; such a test is
counted as skipped. With IMBREX_REQUIRE_TOOLS=1 only a skip whose reason names `shared` (the
reference traces beside the repository) is allowed, any other counts as a failure.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO") or "cargo"
REQUIRE_TOOLS = os.environ.get("IMBREX_REQUIRE_TOOLS") == "1"
E2E_TIMEOUT_S = 1200
SOAK_TIMEOUT_S = 6 * 3600
SKIPPED = 77
# The Python package is built as its users build it, by python_package.py.
CARGO_TEST = ("test", "--release", "--locked", "--workspace", "--exclude", "imbrex-python")
AT_ONCE = 2
POLL_S = 0.02
SLOWEST = 20
# Of what a failed test said so many lines are told again at the end.
LAST_LINES = 12
# They begin first, so that none of them goes on when everything else is done.
LONGEST_FIRST = ("second_reader.py", "fio_verify.py", "kill_nine.py", "nbdcopy_round_trip.py", "lost_disk.py", "instructions.py",
                 "ext4_fsck.py", "labels_elsewhere.py", "two_on_one.py", "kill_nine_in_flight.py", "check_every_stack.py")

ALONE = re.compile(r"^# Alone: (?P<reason>.+)$", re.MULTILINE)
RUST_RESULT = re.compile(r"^test (?P<name>.+) \.\.\. (?P<result>ok|FAILED|ignored)\b")
RUST_SUMMARY = re.compile(r"^test result: (?:.*; finished in (?P<seconds>[0-9.]+)s)?")
NEXT_BINARY = re.compile(r"^ +(Running|Doc-tests) ")
# What is run, and the file it was built as without the hash; of doc tests the crate.
PROGRAM = re.compile(r"^ +(?:Running (?P<unit>unittests )?.*[(/\\](?P<file>[^/\\]+)-[0-9a-f]+\)|Doc-tests (?P<crate>\w+))")
RUST_OUTPUT_OF = re.compile(r"^---- (?P<name>.+) stdout ----$")
SKIP_LINE = re.compile(r"^\W*skip(ped|ping)?\b", re.IGNORECASE)


@dataclasses.dataclass
class Counts:
    """What came of the tests so far."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)
    # What those that failed said last, by name.
    last_lines: dict = dataclasses.field(default_factory=dict)
    # Seconds and name of what was run.
    times: list = dataclasses.field(default_factory=list)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def ok(self, name, note=""):
        self.passed += 1
        say("ok", name, note)

    def fail(self, name, note="", said=""):
        """Counts a failure. The last lines of what the test said are told again at the end, where logs are not cut."""
        self.failed += 1
        self.failures.append(name)
        self.last_lines[name] = said.splitlines()[-LAST_LINES:]
        say("FAILED", name, note)

    def skip(self, name, reason):
        if REQUIRE_TOOLS and "shared" not in reason:
            self.fail(name, f"a skip is not allowed here: {reason}")
            return
        self.skipped += 1
        say("skipped", name, reason)

    def slowest(self):
        """The lines that name what took longest."""
        longest = sorted(self.times, key=lambda time_: (-time_[0], time_[1]))[:SLOWEST]
        return [f"{seconds:8.1f} s  {name}" for seconds, name in longest]


def say(result, name, note=""):
    print(f"{result:>8}  {name}{'  (' + note + ')' if note else ''}", flush=True)


def heading(text):
    print(f"\n== {text}", flush=True)


def check(counts, name, command, needs_cargo_command):
    """One command that must succeed; its output is shown only when it does not."""
    probe = [CARGO, needs_cargo_command, "--version"]
    if subprocess.run(probe, cwd=ROOT, capture_output=True).returncode != 0:
        counts.skip(name, f"cargo {needs_cargo_command} is not installed")
        return
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    counts.times.append((time.monotonic() - began, name))
    if done.returncode == 0:
        counts.ok(name)
    else:
        sys.stdout.write(done.stdout.decode(errors="replace"))
        counts.fail(name)


class RustBinary:
    """The results of one test binary, read from the lines it prints."""

    def __init__(self, name=""):
        self.name = name
        self.finished = True
        self.results = {}
        self.skip_reasons = {}
        self.section_of = None
        self.in_failures = False

    def read(self, line):
        """Takes one line; answers whether a person should see it."""
        if match := RUST_RESULT.match(line):
            self.results[match["name"]] = match["result"]
            return False
        if line.rstrip() in ("successes:", "failures:"):
            self.in_failures = line.startswith("failures")
            self.section_of = None
            return self.in_failures
        if match := RUST_OUTPUT_OF.match(line.rstrip()):
            self.section_of = match["name"]
        elif self.section_of and not self.in_failures and SKIP_LINE.match(line):
            self.skip_reasons.setdefault(self.section_of, line.strip())
        return self.in_failures

    def count(self, counts):
        if not self.finished:
            counts.fail(self.name, "ended before it had run all its tests")
        for name, result in self.results.items():
            if result == "FAILED":
                counts.fail(name)
            elif name in self.skip_reasons:
                counts.skip(name, self.skip_reasons[name])
            elif result == "ok":
                counts.passed += 1


class RustPrograms:
    """Names test binaries by crate and file, from the lines with which cargo begins each."""

    def __init__(self):
        self.crate = ""

    def name(self, line):
        """`core/it`, `core/unit tests`, `core/doc tests`. The unit tests of a crate come before its other tests."""
        match = PROGRAM.match(line)
        if not match:
            return line.strip()
        if match["crate"]:
            return f"{crate_of(match['crate'])}/doc tests"
        if match["unit"]:
            self.crate = crate_of(match["file"])
            return f"{self.crate}/unit tests"
        return f"{self.crate}/{match['file']}"


def crate_of(program):
    """The folder of a crate by the name of its library or program."""
    return "cli" if program == "imbrex" else program.removeprefix("imbrex_")


def read_rust_tests(counts, lines):
    """Counts what `cargo test` prints, and shows what a person should see. Answers how many tests were ignored."""
    binary, programs, ignored = RustBinary(), RustPrograms(), 0
    name = ""
    for line in lines:
        if NEXT_BINARY.match(line):
            binary.count(counts)
            binary = RustBinary(line.strip())
            name = programs.name(line)
            print("         ", line.strip(), flush=True)
        elif line.startswith("running "):
            binary.finished = False
        elif summary := RUST_SUMMARY.match(line):
            binary.finished = True
            binary.count(counts)
            if summary["seconds"]:
                counts.times.append((float(summary["seconds"]), name))
            ignored += sum(result == "ignored" for result in binary.results.values())
            print("         ", line.strip(), flush=True)
            binary = RustBinary()
        elif binary.results or RUST_RESULT.match(line):
            if binary.read(line):
                print(line, end="", flush=True)
        elif line.strip() and not line.startswith("successes:"):
            # Between two binaries cargo itself speaks: what it compiles, and what went wrong.
            print(line, end="", flush=True)
    binary.count(counts)
    return ignored


def rust_tests(counts, soak):
    command = [CARGO, *CARGO_TEST, "--no-fail-fast", "--", "--show-output"]
    if soak:
        command.append("--ignored")
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    failed_before = counts.failed
    ignored = read_rust_tests(counts, process.stdout)
    if process.wait() != 0 and counts.failed == failed_before:
        counts.fail("cargo test", f"exit status {process.returncode}")
    if ignored and not soak:
        print(f"          {ignored} long tests are left to `make soak`", flush=True)


def compiles(counts, part):
    """Compiles what the parts use, all of it before anything is run. What it says is shown as it comes."""
    # The program is the same either way, because no feature of a dependency differs.
    command = ["build", "--release", "--locked"] if part == "e2e" else [*CARGO_TEST, "--no-run"]
    began = time.monotonic()
    status = subprocess.run([CARGO, *command], cwd=ROOT).returncode
    if status == 0:
        say("ok", "compiled", f"{time.monotonic() - began:.1f} s")
        return True
    print(f"\nIt does not compile: `cargo {' '.join(command)}` ended with {status}; its errors are above. No test was run.")
    counts.fail(f"cargo {command[0]}", "it does not compile")
    return False


def e2e_tests(counts, chosen, soak, at_once):
    """Runs the end-to-end tests whose names hold one of the patterns, those that must be alone after the others."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    together, alone = [], []
    for test in sorted((ROOT / "tests" / "e2e").iterdir(), key=place):
        if test.suffix not in (".py", ".sh") or test.name.startswith("_"):
            continue
        if test.name.startswith("soak_") and not soak:
            continue
        if chosen and not any(pattern in test.name for pattern in chosen):
            continue
        if not os.access(test, os.X_OK):
            counts.fail(test.name, "not executable: chmod +x it")
            continue
        (alone if why_alone(test.read_text(encoding="utf-8")) else together).append(test)
    # The target of CARGO_TARGET_DIR is relative to the folder in which cargo runs.
    binary = ROOT / target / "release" / "imbrex"
    run_e2e(counts, together, binary, soak, at_once)
    run_e2e(counts, alone, binary, soak, 1)


def place(test):
    """Where a test stands in the order in which they begin."""
    known = LONGEST_FIRST.index(test.name) if test.name in LONGEST_FIRST else len(LONGEST_FIRST)
    return known, test.name


def why_alone(text):
    """The reason why a test wants the machine for itself, of the text of its file; None if it does not."""
    match = ALONE.search(text)
    return match["reason"] if match else None


class Running:
    """An end-to-end test that was started."""

    def __init__(self, test, binary, soak):
        self.name = test.name
        self.timeout_s = SOAK_TIMEOUT_S if soak else E2E_TIMEOUT_S
        self.scratch = tempfile.mkdtemp(prefix="imbrex-e2e-")
        # A file, because a server that a failed test leaves behind would hold a pipe open.
        self.output = tempfile.TemporaryFile()
        environment = dict(os.environ, IMBREX=str(binary), IMBREX_TMP=self.scratch,
                           IMBREX_SOAK="1" if soak else "0", PYTHONDONTWRITEBYTECODE="1",
                           PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        self.began = time.monotonic()
        # A session of its own, and so a process group.
        self.process = subprocess.Popen([str(test)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True)

    def seconds(self):
        return time.monotonic() - self.began

    def is_over(self):
        """Whether it has ended, or should have."""
        return self.process.poll() is not None or self.seconds() > self.timeout_s

    def end(self):
        """Ends everything that it has started and not ended. Answers its exit status, or None when it took too long."""
        status = self.process.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return status

    def remove_files(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def count(self, counts):
        """Ends it, counts its result, and prints what it said if it has failed."""
        seconds = self.seconds()
        status = self.end()
        with self.output:
            self.output.seek(0)
            text = self.output.read().decode(errors="replace")
        self.remove_files()
        counts.times.append((seconds, self.name))
        if status is None:
            text += f"\nended after {self.timeout_s} s\n"
            status = -signal.SIGKILL
        if status == 0:
            counts.ok(self.name, f"{seconds:.1f} s")
        elif status == SKIPPED:
            lines = text.strip().splitlines()
            counts.skip(self.name, lines[-1] if lines else "no reason given")
        else:
            print(text, end="" if text.endswith("\n") else "\n")
            counts.fail(self.name, f"exit status {status}, {seconds:.1f} s", text)


def run_e2e(counts, tests, binary, soak, at_once):
    """Runs tests in their order, so many at once. However it ends, nothing that they have started goes on."""
    waiting, running = list(tests), []
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(Running(waiting.pop(0), binary, soak))
            for test in [test for test in running if test.is_over()]:
                test.count(counts)
                running.remove(test)
            time.sleep(POLL_S)
    finally:
        # All of them end before any file is removed, which takes a while.
        for test in running:
            test.end()
        for test in running:
            test.remove_files()


def end_on_signals():
    """Whoever ends this program ends what it has started too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def main():
    parser = argparse.ArgumentParser(description="Run the tests and count the results.")
    parser.add_argument("--soak", action="store_true", help="run the long tests instead")
    parser.add_argument("--only", choices=["lint", "rust", "e2e"], help="run one part")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, metavar="N",
                        help=f"so many end-to-end tests run at once ({AT_ONCE})")
    parser.add_argument("name", nargs="*",
                        help="part of the file name of the end-to-end tests to run")
    arguments = parser.parse_args()
    end_on_signals()
    counts = Counts()
    run_parts(counts, arguments)

    if counts.times:
        heading(f"the {SLOWEST} slowest")
        print("\n".join(counts.slowest()))
    print()
    for name in counts.failures:
        print("\n    ".join([f"failed: {name}", *counts.last_lines[name]]))
    if summary := os.environ.get("IMBREX_TEST_SUMMARY"):
        pathlib.Path(summary).write_text(counts.line() + "\n")
    else:
        print(counts.line())
    return 1 if counts.failed else 0


def run_parts(counts, arguments):
    part = arguments.only or ("e2e" if arguments.name else None)
    if part in (None, "lint") and not arguments.soak:
        heading("formatting and lints")
        check(counts, "cargo fmt --check", [CARGO, "fmt", "--all", "--check"], "fmt")
        check(counts, "cargo clippy",
              [CARGO, "clippy", "--release", "--locked", "--workspace", "--all-targets", "--quiet",
               "--", "-D", "warnings"], "clippy")
    if part == "lint":
        return
    heading("compiling")
    if not compiles(counts, part):
        return
    if part in (None, "rust"):
        heading("Rust tests")
        rust_tests(counts, arguments.soak)
    if part in (None, "e2e"):
        free = shutil.disk_usage(tempfile.gettempdir()).free
        heading(f"end-to-end tests ({free >> 20} MiB free in {tempfile.gettempdir()})")
        e2e_tests(counts, arguments.name, arguments.soak, arguments.at_once)


if __name__ == "__main__":
    sys.exit(main())
