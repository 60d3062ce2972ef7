#!/usr/bin/env python3
"""The structure of the house, as far as it can be counted: circles of files, fields of core's structs, places in core
that ask whether a layer is durable, long functions; a number may fall and not rise. And who may plant bugs."""

import pathlib
import re
import sys

from _rust_source import Crate, circles, functions, source, structs

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"
CORE = CRATES / "core" / "src"

CIRCLE_FILES_MAX = 3
# The larger circles that there are, by crate, the largest first. A crate that is not here has none.
CIRCLES_KNOWN = {
    "cli": [4],
    "drives": [15],
    "report": [4],
    "serve": [10, 10],
    "sim": [11, 6, 6],
    "stack": [37],
    "traces": [6],
}
STRUCT_FIELDS_MAX = 20
DURABLE_BRANCHES_MAX = 10
FUNCTION_LINES_MAX = 90

# Whoever asks whether a layer keeps anything over a crash.
ASKS = re.compile(
    r"\b(durable|durability|journaled)\b(\(\))?(\s*\.as_(ref|mut|deref|deref_mut)\(\))?\s*\.(is_some|is_none|is_some_and|is_none_or|map|map_or|map_or_else|and_then)\b"
    r"|\bis_(volatile|journaled|durable_layer)\(|\bkeeps_checksums\(\)|\bare_kept\(\)"
    r"|\b(match|let Some\([^)]*\) =) [^{=\n]*\b(durable|durability|journaled)\b\s*(\.as_\w+\(\)\s*)?(\{|else|$)")
# The ledger and the journal below it answer that question for everybody.
LEDGER = ("ledger", "durability")

# The switch that plants a bug: two files of core have it, layers ask which bug is planted, and the crash search turns it.
# A disk at another server has one of its own, which its tests turn.
SWITCH = re.compile(r"\.plant\(|\bfn plant\(|\.planted\b")
KEEPS_SWITCH = re.compile(r"core/src/(stack|router)\.rs$|serve/src/remote/disk\.rs$|sim/src/crashtest/|cli/src/commands/crashtest[./]")
PLANTED = re.compile(SWITCH.pattern + r"|\bplanted\b|\bPlantedBug\b|\bis_planted\b")

# What serves needs neither simulations nor traces. Only --record writes a trace.
SERVING = re.compile(
    r"cli/src/commands/(create|serve|check|inspect|control|replace|members|image_shape|check_disks|console|stack)"
    r"(\.rs|/.*\.rs)$|(serve|stack|report)/src/.*\.rs$")
RECORDS = "cli/src/commands/serve/recording.rs"
SIMULATES = re.compile(r"\bimbrex_(sim|traces)\b")

# A kind of node is named in the folder of kinds alone.
KIND = re.compile(r"\b(NodeConfig|Facts)::[A-Z]")
KINDS = "stack/src/kinds/"

found = []


def complain(rule, findings):
    if findings:
        found.append(f"{rule}:\n  " + "\n  ".join(findings))


def name_of(module):
    return "/".join(module) or "lib"


def check_circles():
    for crate in sorted(path for path in CRATES.iterdir() if (path / "src").is_dir()):
        large = [group for group in circles(Crate(crate / "src").uses()) if len(group) > CIRCLE_FILES_MAX]
        sizes, known = [len(group) for group in large], CIRCLES_KNOWN.get(crate.name, [])
        grown = len(sizes) > len(known) or any(size > most for size, most in zip(sizes, known))
        if grown or "--list" in sys.argv:
            complain(f"circles of more than {CIRCLE_FILES_MAX} files in {crate.name}; accepted: {known or 'none'}",
                     [f"{len(group)} files: " + ", ".join(map(name_of, group)) for group in large])
        elif sizes != known:
            print(f"note: the circles of files in {crate.name} have fallen from {known} to {sizes}: "
                  "write that into CIRCLES_KNOWN of tests/e2e/house_rules.py")


def check_structs():
    wide = []
    for path in sorted(CORE.rglob("*.rs")):
        for name, fields in structs(source(path)):
            if fields > STRUCT_FIELDS_MAX:
                wide.append(f"{path.relative_to(ROOT)}: {name} has {fields} fields")
    complain(f"structs of more than {STRUCT_FIELDS_MAX} fields in core", wide)


def check_branches():
    branches = []
    for path in sorted(CORE.rglob("*.rs")):
        if path.relative_to(CORE).parts[0] in LEDGER:
            continue
        for number, line in enumerate(source(path).splitlines(), 1):
            if ASKS.search(line) and not re.match(r"\s*pub fn ", line):
                branches.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    if "--list" in sys.argv or len(branches) > DURABLE_BRANCHES_MAX:
        complain(f"{len(branches)} places in core ask whether a layer is durable; accepted: {DURABLE_BRANCHES_MAX}",
                 branches)


def check_functions():
    long = []
    for path in sorted(CRATES.glob("*/src/**/*.rs")):
        for name, first, lines in functions(source(path)):
            if lines > FUNCTION_LINES_MAX:
                long.append(f"{path.relative_to(ROOT)}:{first}: {name} has {lines} lines")
    complain(f"functions of more than {FUNCTION_LINES_MAX} lines", long)


def check_switch():
    named = []
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        place = str(path.relative_to(ROOT / "crates"))
        if KEEPS_SWITCH.match(place):
            continue
        pattern = SWITCH if path.is_relative_to(CORE) else PLANTED
        named += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
                  for number, line in enumerate(source(path).splitlines(), 1) if pattern.search(line)]
    complain("bugs are planted by tests and the crash search alone", named)


def check_serving():
    named = []
    for path in sorted(CRATES.glob("*/src/**/*.rs")):
        place = str(path.relative_to(CRATES))
        if SERVING.match(place) and place != RECORDS:
            named += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
                      for number, line in enumerate(source(path).splitlines(), 1) if SIMULATES.search(line)]
    complain("serving needs neither simulations nor traces, but for --record", named)


def check_kinds():
    named = []
    for path in sorted(CRATES.glob("*/src/**/*.rs")):
        if not str(path.relative_to(CRATES)).startswith(KINDS):
            named += [f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
                      for number, line in enumerate(source(path).splitlines(), 1) if KIND.search(line)]
    complain("a kind of node is named in the folder of kinds alone", named)


check_switch()
check_kinds()
check_serving()
check_circles()
check_structs()
check_branches()
check_functions()
sys.exit("\n".join(found) if found else 0)
