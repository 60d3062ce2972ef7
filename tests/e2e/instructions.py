#!/usr/bin/env python3
"""The instructions of eight fixed inputs, counted by callgrind, are at most 2 % more than tests/baseline/instructions.json
says. Where they are 2 % fewer, a new record is asked for.

Counts depend on the compiler and on what the processor can do: with another compiler, valgrind or processor than
those of the record the counts are printed and not judged. IMBREX_RECORD=1 writes the record anew."""

import json
import os
import pathlib
import re
import subprocess
import sys

from _callgrind import INPUTS, instructions, make_large_writes
from _serving import IMBREX, need

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RECORD = ROOT / "tests" / "baseline" / "instructions.json"
MARGIN = 0.02
# Beside cargo, which need not be on the path.
RUSTC = str(pathlib.Path(os.environ.get("CARGO") or "cargo").with_name("rustc"))
# What libraries choose their code by. Valgrind tells no program of AVX-512, so it makes no difference here.
FEATURES = ("sse4_2", "pclmulqdq", "avx", "avx2", "bmi1", "bmi2", "sha_ni")


def conditions():
    compiler = subprocess.run([RUSTC, "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout
    info = pathlib.Path("/proc/cpuinfo").read_text()
    flags = set(re.search(r"^(?:flags|Features)\s*:\s*(.*)$", info, re.MULTILINE)[1].split())
    return {"compiler": compiler.split(" (")[0].strip(), "valgrind": valgrind.strip(),
            "features": [feature for feature in FEATURES if feature in flags]}


need("valgrind", RUSTC)
here = conditions()
make_large_writes()
counts = {name: instructions(IMBREX, arguments) for name, arguments in INPUTS.items()}
if os.environ.get("IMBREX_RECORD") == "1":
    RECORD.write_text(json.dumps({**here, "instructions": counts}, indent=2) + "\n")
    print(f"recorded: {counts}")
    sys.exit()
record = json.loads(RECORD.read_text())
is_judged = all(record[key] == value for key, value in here.items())
slower, faster = [], []
for name, count in counts.items():
    ratio = count / record["instructions"][name]
    print(f"{name}: {count:,} instructions, {ratio:.4f} of the record")
    if ratio > 1 + MARGIN:
        slower.append(name)
    elif ratio < 1 - MARGIN:
        faster.append(name)
if not is_judged:
    print(f"not judged: recorded with {record['compiler']}, {record['valgrind']}, {record['features']}; here {here}")
elif slower:
    sys.exit(f"more than {MARGIN:.0%} above the record: {', '.join(slower)}; IMBREX_RECORD=1 records them if that is meant")
elif faster:
    print(f"more than {MARGIN:.0%} below the record, please record them anew with IMBREX_RECORD=1: {', '.join(faster)}")
