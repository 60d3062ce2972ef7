#!/usr/bin/env python3
"""Runs every test of the repository and counts the results in one line.

The parts are: formatting and lints, the Rust tests, and the programs in tests/e2e.

An end-to-end test is an executable `tests/e2e/*.py` or `*.sh` (names that start with `_` are
helpers, those with `soak_` run with --soak alone). Exit status 0 means passed, 77 skipped (its last line says why), anything else failed. It
finds the binary in $IMBREX and an empty directory to write to in $IMBREX_TMP.

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

RUST_RESULT = re.compile(r"^test (?P<name>.+) \.\.\. (?P<result>ok|FAILED|ignored)\b")
RUST_SUMMARY = re.compile(r"^test result: ")
NEXT_BINARY = re.compile(r"^ +(Running|Doc-tests) ")
RUST_OUTPUT_OF = re.compile(r"^---- (?P<name>.+) stdout ----$")
SKIP_LINE = re.compile(r"^\W*skip(ped|ping)?\b", re.IGNORECASE)


@dataclasses.dataclass
class Counts:
    """What came of the tests so far."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def ok(self, name, note=""):
        self.passed += 1
        say("ok", name, note)

    def fail(self, name, note=""):
        self.failed += 1
        self.failures.append(name)
        say("FAILED", name, note)

    def skip(self, name, reason):
        if REQUIRE_TOOLS and "shared" not in reason:
            self.fail(name, f"a skip is not allowed here: {reason}")
            return
        self.skipped += 1
        say("skipped", name, reason)


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
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
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


def rust_tests(counts, soak):
    command = [CARGO, "test", "--release", "--locked", "--workspace", "--no-fail-fast", "--",
               "--show-output"]
    if soak:
        command.append("--ignored")
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    failed_before = counts.failed
    binary = RustBinary()
    ignored = 0
    for line in process.stdout:
        if NEXT_BINARY.match(line):
            binary.count(counts)
            binary = RustBinary(line.strip())
            print("         ", line.strip(), flush=True)
        elif line.startswith("running "):
            binary.finished = False
        elif RUST_SUMMARY.match(line):
            binary.finished = True
            binary.count(counts)
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
    if process.wait() != 0 and counts.failed == failed_before:
        counts.fail("cargo test", f"exit status {process.returncode}")
    if ignored and not soak:
        print(f"          {ignored} long tests are left to `make soak`", flush=True)


def e2e_tests(counts, patterns, soak):
    build = [CARGO, "build", "--release", "--locked"]
    if subprocess.run(build, cwd=ROOT).returncode != 0:
        counts.fail("cargo build --release")
        return
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for test in sorted((ROOT / "tests" / "e2e").iterdir()):
        if test.suffix not in (".py", ".sh") or test.name.startswith("_"):
            continue
        if test.name.startswith("soak_") and not soak:
            continue
        if patterns and not any(pattern in test.name for pattern in patterns):
            continue
        if not os.access(test, os.X_OK):
            counts.fail(test.name, "not executable: chmod +x it")
            continue
        run_e2e(counts, test, target / "release" / "imbrex", soak)


def run_to_the_end(test, environment, output, timeout_s):
    """Runs a test, and ends everything that it has started and not ended. Answers its exit status, or None when
    it took too long."""
    # A session of its own, and so a process group.
    process = subprocess.Popen([str(test)], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                               stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def run_e2e(counts, test, binary, soak):
    timeout_s = SOAK_TIMEOUT_S if soak else E2E_TIMEOUT_S
    started = time.monotonic()
    scratch = tempfile.mkdtemp(prefix="imbrex-e2e-")
    environment = dict(os.environ, IMBREX=str(binary), IMBREX_TMP=scratch,
                       IMBREX_SOAK="1" if soak else "0", PYTHONDONTWRITEBYTECODE="1",
                       PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    with tempfile.TemporaryFile() as output:
        # A file, because a server that a failed test leaves behind would hold a pipe open.
        status = run_to_the_end(test, environment, output, timeout_s)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status is None:
        text += f"\nended after {timeout_s} s\n"
        status = -signal.SIGKILL
    took = f"{time.monotonic() - started:.1f} s"
    if status == 0:
        counts.ok(test.name, took)
    elif status == SKIPPED:
        lines = text.strip().splitlines()
        counts.skip(test.name, lines[-1] if lines else "no reason given")
    else:
        print(text, end="" if text.endswith("\n") else "\n")
        counts.fail(test.name, f"exit status {status}, {took}")
    shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Run the tests and count the results.")
    parser.add_argument("--soak", action="store_true", help="run the long tests instead")
    parser.add_argument("--only", choices=["lint", "rust", "e2e"], help="run one part")
    parser.add_argument("name", nargs="*",
                        help="part of the file name of the end-to-end tests to run")
    arguments = parser.parse_args()
    part = arguments.only or ("e2e" if arguments.name else None)

    counts = Counts()
    if part in (None, "lint") and not arguments.soak:
        heading("formatting and lints")
        check(counts, "cargo fmt --check", [CARGO, "fmt", "--all", "--check"], "fmt")
        check(counts, "cargo clippy",
              [CARGO, "clippy", "--release", "--locked", "--workspace", "--all-targets", "--quiet",
               "--", "-D", "warnings"], "clippy")
    if part in (None, "rust"):
        heading("Rust tests")
        rust_tests(counts, arguments.soak)
    if part in (None, "e2e"):
        heading("end-to-end tests")
        e2e_tests(counts, arguments.name, arguments.soak)

    print()
    for name in counts.failures:
        print(f"failed: {name}")
    if summary := os.environ.get("IMBREX_TEST_SUMMARY"):
        pathlib.Path(summary).write_text(counts.line() + "\n")
    else:
        print(counts.line())
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
