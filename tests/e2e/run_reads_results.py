#!/usr/bin/env python3
"""run.py counts and times what cargo prints, and reads which end-to-end tests want the machine for themselves."""

import contextlib
import io
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent))
import run  # noqa: E402, which lies beside this folder

PRINTED = """\
    Finished `release` profile [optimized + debuginfo] target(s) in 0.21s
     Running unittests src/main.rs (target/release/deps/imbrex-00d4a47ba24bca6c)

running 1 test
test args::reads ... ok

successes:

---- args::reads stdout ----
what a test prints

successes:
    args::reads

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.50s

     Running tests/it/main.rs (target/release/deps/it-6dd2a79cb19fd8a0)

running 4 tests
test served::fails ... FAILED
test served::long ... ignored, long: for the soak
test served::skips ... ok
test served::works ... ok

successes:

---- served::skips stdout ----
skipped: no fuse here

failures:

---- served::fails stdout ----
thread 'served::fails' panicked at crates/cli/tests/it/served.rs:7:5:
why it failed

failures:
    served::fails

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 12.25s

     Running unittests src/lib.rs (/elsewhere/release/deps/imbrex_core-0a1b2c3d4e5f6071)

running 2 tests
test map::one ... ok
     Running tests/cache/main.rs (/elsewhere/release/deps/cache-aa1b2c3d4e5f6071)

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests imbrex_core

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
"""


def read(printed):
    """The counts, how many were ignored, and what was shown."""
    counts, shown = run.Counts(), io.StringIO()
    with contextlib.redirect_stdout(shown):
        ignored = run.read_rust_tests(counts, printed.splitlines(keepends=True))
    return counts, ignored, shown.getvalue()


run.REQUIRE_TOOLS = False
found, ignored_tests, said = read(PRINTED)
unfinished = "Running unittests src/lib.rs (/elsewhere/release/deps/imbrex_core-0a1b2c3d4e5f6071)"
assert found.failures == ["served::fails", unfinished], found.failures
assert (found.passed, found.skipped, ignored_tests) == (3, 1, 1), (found, ignored_tests)
assert "why it failed" in said and "no fuse here" in said and "what a test prints" not in said, said
assert found.times == [(0.5, "cli/unit tests"), (12.25, "cli/it"), (0.0, "core/cache"), (1.0, "core/doc tests")], found.times

run.REQUIRE_TOOLS = True
assert "served::skips" in read(PRINTED)[0].failures, "a skip was let through"

found.times += [(2.0, f"test {number}") for number in range(run.SLOWEST)]
lines = found.slowest()
assert len(lines) == run.SLOWEST and lines[0] == "    12.2 s  cli/it" and lines[1] == "     2.0 s  test 0", lines

assert run.why_alone("print(1)  # Alone: at the end of a line\n") is None
assert run.why_alone("#!/bin/sh\n# Alone: it measures time\n") == "it measures time"
tests = {test.name: test for test in pathlib.Path(__file__).parent.iterdir()}
assert set(run.LONGEST_FIRST) <= set(tests), set(run.LONGEST_FIRST) - set(tests)
assert run.why_alone(tests["emulated_cliff.py"].read_text(encoding="utf-8")), "one that measures time is not alone"
