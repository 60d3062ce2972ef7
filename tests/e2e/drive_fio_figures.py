#!/usr/bin/env python3
"""`imbrex drive fio --json` has the figures of fio where they do not depend on time: fio runs the same jobs with its
`null` engine, which does nothing, and with libaio on a file in memory. Figures that depend on time are held against
each other, by the same rules in all documents."""

# Alone: fio measures time, and how deep its queue is depends on it.

import json
import os
import pathlib
import subprocess
import tempfile

from _serving import IMBREX, SCRATCH, need

need("fio")
GLOBAL = "size=1m\nbs=4k\nrandseed=7\npercentile_list=99:50:99.9"
# Name: options, and what is by chance. `ways`: which requests read and which write. `lengths`: how long they are.
# `pace`: how much fio oversleeps, after which it catches up.
JOBS = {
    f"{way}-{bs}-{depth}": (f"rw={way}\nbs={bs}\niodepth={depth}", "")
    for way, bs, depth in (
        ("read", "4k", 1), ("randread", "4k", 2), ("randread", "4k", 8), ("write", "4k", 32), ("randwrite", "4k", 64),
        ("randwrite", "4k", 128), ("read", "12k", 4), ("randread", "64k", 8), ("write", "1m", 8))
}
JOBS |= {
    "fewer-than-depth": ("rw=read\niodepth=32\nnumber_ios=5", ""),
    "as-many-as-depth": ("rw=read\niodepth=32\nnumber_ios=32", ""),
    "mixed": ("rw=randrw\nrwmixread=70\niodepth=8", "ways"),
    "mixed-reads-only": ("rw=randrw\nrwmixread=100\niodepth=4", ""),
    "mixed-writes-only": ("rw=rw\nrwmixread=0\niodepth=4", ""),
    "passes": ("rw=read\nio_size=2560k\niodepth=8", ""),
    "random-passes": ("rw=randread\nio_size=2560k\niodepth=8", ""),
    "passes-with-replacement": ("rw=randread\nnorandommap\nio_size=2560k\niodepth=8", ""),
    "passes-of-odd-lengths": ("rw=randread\nbs=12k\nio_size=2560k\niodepth=8", ""),
    "mixed-passes": ("rw=randrw\nio_size=2560k\niodepth=8", "ways"),
    "loops": ("rw=randwrite\nsize=256k\nloops=3\niodepth=8", ""),
    "loops-of-a-few": ("rw=read\nnumber_ios=100\nloops=3\niodepth=8", ""),
    "less": ("rw=randread\nbs=12k\nio_size=100k\niodepth=8", ""),
    "every-other": ("rw=read:4k\nio_size=1280k\niodepth=8", ""),
    "strided": ("rw=read\nzonemode=strided\nzonesize=64k\nzonerange=64k\nzoneskip=64k\nio_size=2m\niodepth=8", ""),
    "flushes": ("rw=write\nfsync=4\niodepth=8", ""),
    "flush-each": ("rw=write\nfsync=1\nend_fsync=1", ""),
    "flushes-in-loops": ("rw=write\nfsync=4\nsize=20k\nloops=8", ""),
    "data-flushes": ("rw=write\nfdatasync=8", ""),
    "mixed-flushes": ("rw=randrw\nfsync=4\nwrite_lat_log=flushed", "ways"),
    "split": ("rw=write\nbssplit=12k/50:8k/50\niodepth=4", ""),
    "split-lengths": ("rw=write\nbssplit=4k/50:64k/50\niodepth=4", "lengths"),
    "range": ("rw=randread\nbsrange=4k-10k\niodepth=4", "lengths"),
    "three": ("rw=randread\nnumjobs=3\niodepth=8\ngroup_reporting", ""),
    "two": ("rw=randread\nnumjobs=2\niodepth=2\ndescription=two of them", ""),
    "one-at-a-time": ("rw=read\nioengine=psync\niodepth=8", ""),
    "pauses": ("rw=read\niodepth=8\nthinktime=1000\nthinktime_blocks=5", ""),
    "pauses-by-issue": ("rw=read\niodepth=8\nthinktime=1000\nthinktime_blocks=5\nthinktime_blocks_type=issue", ""),
    "logged": ("rw=randread\nnumber_ios=200\niodepth=4\nwrite_lat_log=logged", ""),
    "slow": ("stonewall\nrw=randread\nrate_iops=40\nio_size=256k\niodepth=8", "pace"),
}
# fio's trims of a file are not those of a device.
TRIMS = {
    "trim": ("rw=trim\nbs=64k", ""),
    "randtrim": ("rw=randtrim\nnumber_ios=50", ""),
}
WAYS = ("read", "write", "trim")
BATCHES = ("iodepth_submit", "iodepth_complete")
STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
PERCENTILES = ["50.000000", "99.000000", "99.900000"]


def run(folder, engine, jobs, data, command):
    """The document that a command prints of jobs that run side by side, each a group. Its logs are left in the folder."""
    (SCRATCH / folder).mkdir()
    sections = "".join(f"[{name}]\nnew_group\n{options}\n" for name, (options, _) in jobs.items())
    text = f"[global]\nfilename={data}\nioengine={engine}\n{GLOBAL}\n{sections}"
    (SCRATCH / folder / "jobs.fio").write_text(text, encoding="utf-8")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=SCRATCH / folder)
    # fio says on standard output too what it thinks of a job.
    return json.loads(done.stdout[done.stdout.index(b"{\n"):])


def fio(folder, engine, jobs, data):
    return run(folder, engine, jobs, data, ["fio", "--output-format=json", "jobs.fio"])


def model(folder, jobs, data):
    return run(folder, "libaio", jobs, data, [IMBREX, "drive", "fio", "cmr-500gb-7200", "jobs.fio", "--json"])


def leaves(value, path=()):
    """Path and value of all that is not an object, in order. What no request was submitted to has no latency."""
    if not isinstance(value, dict):
        return {path: value}
    found = {}
    for key, inner in value.items():
        found |= leaves(inner, (*path, key))
    return found


def depends_on_time(path):
    """Also on the host, and on submission, which takes no time in a model."""
    last = path[-1]
    return (last in ("eta", "elapsed", "job_runtime", "usr_cpu", "sys_cpu", "ctx", "majf", "minf", "runtime")
            or last.startswith(("bw", "iops")) or path[0].startswith("latency_") and len(path) > 1
            or "slat_ns" in path or len(path) > 2 and last != "N")


def compare(name, theirs, ours, chance, *, without=()):
    """One job of fio and of the model, but for the objects named in `without`."""
    theirs, ours = leaves(theirs), leaves(ours)
    assert list(theirs) == list(ours), f"{name}: {set(theirs) ^ set(ours)}, or another order"
    for path, value in theirs.items():
        our = ours[path]
        where = f"{name}: {'.'.join(path)}: fio {value}, the model {our}"
        assert type(value) is type(our), where
        counts = path[0] in WAYS and ("io" in path[-1] or path[-1] == "N") or path[0] == "sync"
        by_chance = chance in ("ways", "lengths") and counts
        by_chance = by_chance or chance in ("lengths", "pace") and path[0].startswith("iodepth_")
        # As many as the flushes.
        by_chance = by_chance or name == "mixed-flushes" and path[0] == "iodepth_level"
        if depends_on_time(path) or by_chance or path[0] in without:
            continue
        if name == "data-flushes" and path in (("sync", "total_ios"), ("read", "short_ios")):
            # fio 3.33 counts them in the wrong place.
            assert theirs["sync", "lat_ns", "N"] == ours["sync", "total_ios"], where
            continue
        same = abs(value - our) <= 1e-6 if isinstance(value, float) else value == our
        assert same, where
    total = {key: [sum(of[way, key] for way in WAYS) for of in (theirs, ours)] for key in ("total_ios", "io_bytes")}
    if chance == "ways":
        assert all(fio_has == ours_has for fio_has, ours_has in total.values()), f"{name}: {total}"


def near(found, wanted, tolerance):
    return abs(found - wanted) <= tolerance


def check(job, elapsed, *, batches=True):
    """The rules between the figures of one job. `batches`: requests were submitted to something."""
    name, ios, syncs = job["jobname"], sum(job[way]["total_ios"] for way in WAYS), job["sync"]["lat_ns"]["N"]
    # A share that is not nothing is 0.1 or 0.01 at least.
    assert near(sum(job["iodepth_level"].values()), 100 * (ios + syncs) / ios, 0.5), f"{name}: {job['iodepth_level']}"
    for key in BATCHES:
        assert near(sum(job[key].values()), 100, 0.5) or not batches, f"{name}: {job[key]}"
    steps = sum(sum(job[f"latency_{unit}"].values()) for unit in ("ns", "us", "ms"))
    assert near(steps, 100, 0.1), f"{name}: latencies add up to {steps} %"
    assert job["elapsed"] == elapsed, name
    for way in WAYS:
        of = job[way]
        where = f"{name}: {way}: {of}"
        ms = of["runtime"]
        assert (ms > 0) == (of["io_bytes"] > 0), where
        assert of["io_kbytes"] == of["io_bytes"] // 1024 and of["bw"] == of["bw_bytes"] // 1024, where
        assert of["bw_bytes"] == (of["io_bytes"] * 1000 // ms if ms else 0), where
        assert near(of["iops"], of["total_ios"] * 1000 / ms if ms else 0, 1e-5), where
        assert of["clat_ns"]["N"] == of["lat_ns"]["N"] == of["total_ios"], where
        spread(of["lat_ns"], where)
        spread(of["clat_ns"], where)
        percentiles(of["clat_ns"], where)
        for kind, deviation in (("bw", "bw_dev"), ("iops", "iops_stddev")):
            low, high, mean = of[f"{kind}_min"], of[f"{kind}_max"], of[f"{kind}_mean"]
            samples = of[f"{kind}_samples"]
            assert low <= mean <= high if samples else low == high == mean == of[deviation] == 0, where
            assert samples <= ms // 400 + 1, where
        assert 0 <= of["bw_agg"] <= 100 and (of["bw_agg"] > 0) == (of["bw_samples"] > 0), where
    spread(job["sync"]["lat_ns"], name)
    percentiles(job["sync"]["lat_ns"], name)


def spread(of, where):
    assert of["min"] <= of["mean"] <= of["max"] if of["N"] else of["min"] == of["max"] == of["mean"] == 0, where
    assert 0 <= of["stddev"] <= of["max"] - of["min"] + 1 and (of["N"] > 1 or of["stddev"] == 0), where


def percentiles(of, where):
    assert ("percentile" in of) == (of["N"] > 0), where
    if of["N"]:
        values = list(of["percentile"].values())
        assert list(of["percentile"]) == PERCENTILES and values == sorted(values), where
        # fio keeps latencies to 1/64.
        assert of["min"] * 63 / 64 - 1 <= values[0] and values[-1] <= of["max"] * 65 / 64 + 1, where


def check_log(folder, document):
    """The latencies of a job are those of its log."""
    job = next(job for job in document["jobs"] if job["jobname"] == "logged")
    lines = next((SCRATCH / folder).glob("logged_clat.*log")).read_text().splitlines()
    latencies = [int(line.split(", ")[1]) for line in lines]
    of, where = job["read"]["clat_ns"], f"{folder}: the log, and {job}"
    assert (of["N"], of["min"], of["max"]) == (len(latencies), min(latencies), max(latencies)), where
    assert near(of["mean"], sum(latencies) / len(latencies), 1), where
    counts = {unit: dict.fromkeys((*map(str, STEPS), *more), 0)
              for unit, more in (("ns", ()), ("us", ()), ("ms", ("2000", ">=2000")))}
    for ns in latencies:
        unit, value = ("ns", ns) if ns < 1000 else ("us", ns // 1000) if ns < 10**6 else ("ms", ns // 10**6)
        step = next((end for end in (*STEPS, 2000) if value < end), None)
        counts[unit][str(step) if step else ">=2000"] += 1
    for unit, found in counts.items():
        wanted = {step: 100 * count / len(latencies) for step, count in found.items()}
        shares = job[f"latency_{unit}"]
        assert all(near(shares[step], wanted[step], 1e-5) for step in wanted), f"{where}: {unit}: {wanted}"


def check_flushes(folder, document):
    """A mixed job flushes after each request but a flush while the number of writes is a multiple of `fsync`."""
    job = next(job for job in document["jobs"] if job["jobname"] == "mixed-flushes")
    lines = next((SCRATCH / folder).glob("flushed_lat.*log")).read_text().splitlines()
    writes = flushes = 0
    # The flushes are in the log too, as requests of a way that is none.
    ways = [way for way in (int(line.split(", ")[2]) for line in lines) if way < 2]
    for way in ways[:-1]:
        writes += way
        flushes += writes > 0 and writes % 4 == 0
    assert job["sync"]["total_ios"] == flushes, f"{folder}: {flushes} flushes, and {job['sync']}"
    return flushes > writes // 4


memory = pathlib.Path("/dev/shm")
with tempfile.NamedTemporaryFile(dir=memory if memory.is_dir() else SCRATCH) as file:
    file.truncate(1 << 20)
    os.environ["NO_COLOR"] = "1"
    libaio = fio("libaio", "libaio", JOBS, file.name)
    null = fio("null", "null", JOBS, file.name)
    ours = model("model", JOBS, file.name)
    trims = fio("trims", "null", TRIMS, file.name), model("model-trims", TRIMS, file.name)
for document in (libaio, ours, trims[1]):
    for job in document["jobs"]:
        check(job, document["jobs"][0]["elapsed"])
for document in (null, trims[0]):
    for job in document["jobs"]:
        check(job, document["jobs"][0]["elapsed"], batches=False)
for theirs, other, our in zip(libaio["jobs"], null["jobs"], ours["jobs"], strict=True):
    options, chance = (JOBS | TRIMS)[our["jobname"]]
    compare(our["jobname"], theirs, our, chance)
    # The null engine answers at once. Its queue is never deeper than 1, and with a depth of 1 nothing is counted as
    # submitted. With more, and between loops, fio flushes twice when a flush did not fit in.
    deep = "iodepth=" in options and "iodepth=1" not in options.splitlines()
    if not ("fsync" in options and (deep or "loops" in options)):
        compare(our["jobname"], other, our, chance, without=(*BATCHES, "iodepth_level") if deep else BATCHES)
for theirs, our in zip(*(document["jobs"] for document in trims), strict=True):
    compare(our["jobname"], theirs, our, "", without=BATCHES)
for folder, document in (("libaio", libaio), ("null", null), ("model", ours)):
    check_log(folder, document)
    assert check_flushes(folder, document), "no read came between two flushes"
slow = next(job for job in ours["jobs"] if job["jobname"] == "slow")["read"]
assert 1575 <= slow["runtime"] <= 1700 and slow["bw_samples"] == 3, f"64 requests at 40 a second: {slow}"
assert ours["global options"] == libaio["global options"]
print(f"{len(ours['jobs'])} jobs as libaio and null run them, {len(trims[1]['jobs'])} that trim")
