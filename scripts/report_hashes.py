#!/usr/bin/env python3
"""Records what the reports of a build say, as hashes, and checks that another build says the same.

    scripts/report_hashes.py record [IMBREX]     writes tests/baseline/reports.json
    scripts/report_hashes.py check [IMBREX]      compares with it; exit status 1 when a report differs

A report is that of one system on one recording with one seed, volatile or durable: every ready-made stack and
every drive of the library, every recording of workloads/, seeds 1 to 3. Drives that hide their shingles are divided by
16, so that their logs fill. IMBREX is the program, target/release/imbrex if it is left out. The check ignores the
keys `simulation`, `commit`, `configuration` and `drive_sha256`, keys that no report had when the hashes were recorded, and recordings
that came after them.
`--only TEXT` takes the runs whose name contains the text, `--jobs N` runs so many at once."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "baseline" / "reports.json"
SEEDS = (1, 2, 3)
DRIVE_SCALE = "16"
# A comment in a drive file changes its hash and nothing else of a report.
IGNORED = {"simulation", "commit", "configuration", "drive_sha256"}
LIST_INDEX = "*"


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def systems(imbrex):
    """Every stack and drive: its name, its nodes that can be durable, and whether it is divided."""
    found = []
    is_drive = False
    for line in output_of(imbrex, "systems").splitlines():
        is_drive |= line.startswith("Drives of the library")
        if not (match := re.match(r"^([a-z0-9-]+) {2,}", line)):
            continue
        toml = output_of(imbrex, "systems", "--show", match[1])
        kinds = re.findall(r'^name = "([^"]+)"\nkind = "([^"]+)"', toml, re.MULTILINE)
        durable = [node for node, kind in kinds if kind in ("write-back-cache", "persistent-cache")]
        found.append((match[1], durable, is_drive and bool(durable)))
    return found


def runs(imbrex):
    """The name of every run, and the options that make it."""
    for trace in sorted((ROOT / "workloads").glob("*.imbrex.xz")):
        for name, nodes, is_divided in systems(imbrex):
            for durable in (False, True) if nodes else (False,):
                for seed in SEEDS:
                    options = ["--trace", f"workloads/{trace.name}", "--systems", name, "--seed", str(seed),
                               "--fit", "wrap", "--jobs", "1", "--json"]
                    options += ["--drive-scale", DRIVE_SCALE] if is_divided else []
                    for node in nodes if durable else []:
                        options += ["--set", f"{node}.durable=true"]
                    mode = "durable" if durable else "volatile"
                    yield f"{trace.name.split('.')[0]}/{name}/{mode}/{seed}", options


def recording_of(name):
    return name.split("/")[0]


def values(report, path=()):
    """Each value of a document with its path; the places of lists have no number in it."""
    if isinstance(report, dict):
        for key in sorted(report):
            if key not in IGNORED:
                yield from values(report[key], (*path, key))
    elif isinstance(report, list):
        for part in report:
            yield from values(part, (*path, LIST_INDEX))
    else:
        yield ".".join(path), report


def commit_of(imbrex):
    """The commit that the program was built from."""
    options = ("--trace", "synthetic:one-block/1000", "--limit", "1", "--systems", "cmr-only", "--json")
    return json.loads(output_of(imbrex, "compare", *options))["commit"][:7]


def digest(found, known):
    lines = "".join(f"{path}={json.dumps(value)}\n" for path, value in found if path in known)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def reports(imbrex, is_wanted, jobs):
    """The values of every report, by the name of its run, in the order of the runs."""
    wanted = [(name, options) for name, options in runs(imbrex) if is_wanted(name)]

    def one(run):
        done = subprocess.run([imbrex, "compare", *run[1]], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            # A combination that cannot be simulated: what is said of it is what is recorded.
            # The number of a thread that panics is another one each time.
            said = re.sub(r"^  done: .*\n", "", done.stderr, flags=re.MULTILINE)
            return run[0], [("refused", re.sub(r" \(\d+\) panicked", " panicked", said.strip()))]
        return run[0], list(values(json.loads(done.stdout)))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, (name, found) in enumerate(pool.map(one, wanted), start=1):
            print(f"\r{number} of {len(wanted)} {name:<60}", end="", file=sys.stderr, flush=True)
            yield name, found
    print(file=sys.stderr)


def record(imbrex, jobs):
    found = dict(reports(imbrex, lambda name: True, jobs))
    known = {path for report in found.values() for path, _ in report}
    hashes = {name: digest(report, known) for name, report in found.items()}
    document = {"commit": commit_of(imbrex), "keys": sorted(known), "reports": hashes}
    RECORD.write_text(json.dumps(document, indent=0) + "\n")
    print(f"{len(hashes)} reports")


def check(imbrex, only, jobs):
    document = json.loads(RECORD.read_text())
    known = set(document["keys"])
    recordings = {recording_of(name) for name in document["reports"]}
    differ = []
    count = 0
    for name, found in reports(imbrex, lambda name: only in name and recording_of(name) in recordings, jobs):
        count += 1
        if digest(found, known) != document["reports"].get(name):
            differ.append(name)
    for name in differ:
        print(f"differs from {document['commit']}: {name}")
    print(f"{count - len(differ)} of {count} reports are the same")
    return 1 if differ else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("imbrex", nargs="?", default=ROOT / "target" / "release" / "imbrex")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    args = parser.parse_args()
    if args.what == "record":
        return record(args.imbrex, args.jobs)
    return check(args.imbrex, args.only, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
