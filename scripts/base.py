#!/usr/bin/env python3
"""Keeps what a build does, and says where another build does something else. For changes of structure, which must not.

    scripts/base.py keep FOLDER [IMBREX]       keeps the program and what it does in FOLDER
    scripts/base.py compare FOLDER [IMBREX]    compares a build with it; exit status 1 when something differs

IMBREX is the program, target/release/imbrex if it is left out. Four parts, of which `--parts` chooses some:

  reports       of every stack and drive on every recording (as scripts/report_hashes.py runs them). Of each key that differs:
                in how many reports, and the first of them with both values. Keys that are new or gone are named apart;
                new ones are no difference.
  images        of every stack and drive that can be created, closed and killed (as tests/e2e/soak_images_before.py makes
                them). The text of each image is the same, byte for byte; each build serves and checks what the other made.
  instructions  of the five inputs of tests/e2e/instructions.py: within 1 %. The names of folders and the environment count
                too, a little.
  times         of replays: the median of three, the two programs in turn. They are printed and not judged.

`--only TEXT` takes the reports and images whose name contains the text, `--jobs N` makes so many reports at once."""

import argparse
import gzip
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ("reports", "images", "instructions", "times")
INSTRUCTIONS_MARGIN = 0.01
ROUNDS = 3
# Where `image` says how long the text of the stack is, and where that begins (docs/formats/image.md).
STACK_LENGTH, HEADER = 40, 64
# Helpers of the tests want to know these when they are imported.
os.environ.setdefault("IMBREX", str(ROOT / "target" / "release" / "imbrex"))
os.environ.setdefault("IMBREX_TMP", tempfile.mkdtemp(prefix="imbrex-base-"))
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests" / "e2e")]
import report_hashes  # noqa: E402, which lies beside this file
from _callgrind import INPUTS, instructions, make_large_writes  # noqa: E402
from _images import Device, cases, make, run  # noqa: E402
from _nbd import Pipeline  # noqa: E402

SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])
# The shipped recordings, each with a stack that it is replayed through.
REPLAYS = {"pgbench": "pore", "sysbench": "ride", "file-churn": "lru-band", "compile": "st8000as0002"}


class Findings:
    """What differs, as it is found."""

    def __init__(self):
        self.count = 0

    def differs(self, text):
        self.count += 1
        print(f"differs: {text}", flush=True)


def reports(program, only, jobs):
    """By the name of each run, the values of its report by key; those of a list are in one."""
    for name, found in report_hashes.reports(program, lambda name: only in name, jobs):
        values = {}
        for path, value in found:
            values.setdefault(path, []).append(value)
        yield name, values


def keep_reports(folder, program, only, jobs):
    count = 0
    with gzip.open(folder / "reports.jsonl.gz", "wt", encoding="utf-8") as file:
        for name, values in reports(program, only, jobs):
            file.write(json.dumps([name, values]) + "\n")
            count += 1
    print(f"reports: {count} kept")


def compare_reports(folder, program, only, jobs, findings):
    with gzip.open(folder / "reports.jsonl.gz", "rt", encoding="utf-8") as file:
        kept = dict(json.loads(line) for line in file)
    wanted = {name for name in kept if only in name}
    other, count, unlike = {}, 0, 0
    for name, values in reports(program, only, jobs):
        if name not in kept:
            other.setdefault(("a report that was not there", ""), []).append((name, None, None))
            continue
        count += 1
        wanted.discard(name)
        before = kept[name]
        differ = [key for key in before if values.get(key) != before[key]]
        unlike += bool(differ)
        for key in sorted(differ):
            kind = "differs" if key in values else "gone"
            other.setdefault((kind, key), []).append((name, before[key], values.get(key)))
        for key in values.keys() - before.keys():
            other.setdefault(("new", key), []).append((name, None, values[key]))
    for (kind, key), found in sorted(other.items()):
        name, before, after = found[0]
        if kind in ("differs", "gone"):
            findings.differs(f"{key} of {len(found)} reports, first of {name}: {before} before, {after} now")
        else:
            print(f"{kind}: {key}, in {len(found)} reports, first in {name}")
    if wanted:
        findings.differs(f"{len(wanted)} reports are not made any more, first {min(wanted)}")
    print(f"reports: {count - unlike} of {count} are the same")


def text_of(data):
    """The text of an image: the stack as it was created."""
    image = (data / "image").read_bytes()
    length, = struct.unpack_from("<Q", image, STACK_LENGTH)
    return image[HEADER:HEADER + length]


def make_image(program, case, kill, data):
    """Creates an image, writes to it, and closes or kills its server; what a client knows of it, or none if no such image is."""
    name, stack, options, requests, _ = case
    if not make(program, stack, data, options):
        return None
    device = Device(stack, data, random.Random(f"{name} {kill}"))
    device.use(program, requests, kill)
    return device


def copy(source, target):
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", "--sparse=always", source, target], check=True)


def images_of(program, only):
    """Every image that a program makes: its name, and the device."""
    for case in cases(program):
        # A disk that is elsewhere is not in the folder that is kept.
        if only not in case[0] or case[4]:
            continue
        for kill in (False, True):
            device = make_image(program, case, kill, SCRATCH / "data")
            if device is None:
                break
            yield f"{case[0]}/{'killed' if kill else 'closed'}", device


def keep_images(folder, program, only):
    count = 0
    for name, device in images_of(program, only):
        target = folder / "images" / name
        target.mkdir(parents=True)
        copy(device.data, target / "data")
        known = {"stack": str(device.stack), "versions": device.versions, "unanswered": device.unanswered}
        (target / "known.json").write_text(json.dumps(known))
        if isinstance(device.stack, pathlib.Path):
            shutil.copy(device.stack, target / "stack.toml")
        count += 1
    print(f"images: {count} kept")


def serves(program, checker, device):
    """A program serves an image, a checker finds nothing; what is wrong, or none."""
    try:
        with device.serve(program) as server:
            device.check(Pipeline(server.socket))
    except (AssertionError, ConnectionError, OSError) as error:
        return f"is not served: {error}"
    done = run(checker, "check", device.data, "--data")
    if done.returncode != 0:
        return f"is not clean: {done.stdout.strip() or done.stderr.strip()}"
    return None


def kept_device(folder, name):
    """The copy of an image that was kept."""
    place = folder / "images" / name
    known = json.loads((place / "known.json").read_text())
    own = place / "stack.toml"
    copy(place / "data", SCRATCH / "data")
    device = Device(own if own.exists() else known["stack"], SCRATCH / "data", random.Random(name))
    for part in ("versions", "unanswered"):
        setattr(device, part, {int(block): version for block, version in known[part].items()})
    return device


def compare_images(folder, program, only, findings):
    before = folder / "imbrex"
    kept = {str(path.parent.relative_to(folder / "images")) for path in folder.glob("images/*/*/known.json")}
    kept = {name for name in kept if only in name}
    texts = {}
    for name in sorted(kept):
        device = kept_device(folder, name)
        texts[name] = text_of(device.data)
        if wrong := serves(program, before, device):
            findings.differs(f"the image {name} of the kept build {wrong}")
    made = set()
    for name, device in images_of(program, only):
        made.add(name)
        if name not in kept:
            print(f"new: the image {name}")
            continue
        if text_of(device.data) != texts[name]:
            findings.differs(f"the text of the image {name}")
        if wrong := serves(before, program, device):
            findings.differs(f"the image {name} of this build, by the kept one, {wrong}")
    for name in sorted(kept - made):
        findings.differs(f"the image {name} is not made any more")
    print(f"images: {len(kept)} of the kept build and {len(made)} of this one were served and checked by the other")


def keep_instructions(folder, program):
    make_large_writes()
    counts = {name: instructions(program, arguments) for name, arguments in INPUTS.items()}
    (folder / "instructions.json").write_text(json.dumps(counts, indent=2) + "\n")
    print(f"instructions: {counts}")


def compare_instructions(folder, program, findings):
    make_large_writes()
    for name, before in json.loads((folder / "instructions.json").read_text()).items():
        ratio = instructions(program, INPUTS[name]) / before
        print(f"instructions: {name}: {ratio:.4f}")
        if abs(ratio - 1) > INSTRUCTIONS_MARGIN:
            findings.differs(f"the instructions of {name} by more than {INSTRUCTIONS_MARGIN:.0%}")


def replay_s(program, recording, stack):
    start = time.perf_counter()
    command = [program, "compare", "--trace", f"workloads/{recording}.imbrex.xz", "--systems", stack, "--jobs", "1", "--json"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare_times(folder, program):
    for recording, stack in REPLAYS.items():
        turns = [[replay_s(one, recording, stack) for one in (folder / "imbrex", program)] for _ in range(ROUNDS)]
        before, now = (statistics.median(times) for times in zip(*turns))
        print(f"times: {stack} on {recording}: {now:.2f} s now, {before:.2f} s before, {now / before:.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("keep", "compare"))
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("imbrex", nargs="?", type=lambda path: pathlib.Path(path).resolve(),
                        default=ROOT / "target" / "release" / "imbrex")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="LIST")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    args = parser.parse_args()
    parts = args.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--parts {','.join(unknown)}: accepted are {', '.join(PARTS)}")
    folder, program, findings = args.folder, args.imbrex, Findings()
    if args.what == "keep":
        folder.mkdir(parents=True)
        shutil.copy(program, folder / "imbrex")
        program = folder / "imbrex"
    if "reports" in parts:
        keep_reports(folder, program, args.only, args.jobs) if args.what == "keep" else \
            compare_reports(folder, program, args.only, args.jobs, findings)
    if "images" in parts:
        keep_images(folder, program, args.only) if args.what == "keep" else \
            compare_images(folder, program, args.only, findings)
    if "instructions" in parts:
        keep_instructions(folder, program) if args.what == "keep" else compare_instructions(folder, program, findings)
    if "times" in parts and args.what == "compare":
        compare_times(folder, program)
    return 1 if findings.count else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
