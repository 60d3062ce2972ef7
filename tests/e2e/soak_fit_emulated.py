#!/usr/bin/env python3
"""The jobs of docs/fit.md, made by fio itself in wall time on an emulated drive of 1/64 of the size, and what
`imbrex drive fit` says to the logs that fio wrote: the parameters of the drive file, within a tenth."""

# Alone: it measures how long requests take.

import json
import pathlib
import re
import shutil
import subprocess
import time
import tomllib

from _serving import IMBREX, SCRATCH, Emulating, need

need("fio")
STACK = "st5000as0011"
SCALE = 64
TOLERANCE = 0.1
ROOT = pathlib.Path(__file__).resolve().parents[2]
# The jobs are for a drive of 5 TB; fewer requests do on a smaller one, and a region of the same share of it.
CHANGES = {
    "seek": {"number_ios": 6000},
    "small-writes": {"number_ios": 35_000, "size": 56_000_000_000 // SCALE // 8192 * 8192},
    "large-writes": {"number_ios": 400},
}

# Server and client before other work of the machine, where the system lets us: what it delays would be taken for
# the drive's.
TIMELY = ["chrt", "--fifo", "1"]
if not shutil.which("chrt") or subprocess.run([*TIMELY, "true"], stderr=subprocess.DEVNULL).returncode:
    print("other work of the machine may be seen in the latencies: chrt --fifo is not permitted", flush=True)
    TIMELY = []

drive = tomllib.loads((ROOT / "drives" / f"{STACK}.toml").read_text(encoding="utf-8"))
capacity = int(drive["capacity"].removesuffix(" B")) // SCALE


def lines_of(name):
    """The job for a drive of that size."""
    lines = (ROOT / "experiments" / "fit" / f"{name}.fio").read_text(encoding="utf-8").splitlines()
    lines.remove("filename=${DISK}")
    for option, value in CHANGES[name].items():
        lines = [f"{option}={value}" if line.startswith(f"{option}=") else line for line in lines]
        assert f"{option}={value}" in lines, f"{name}.fio has no {option}"
    return lines


def log_of(name):
    """Runs a job on a drive that is new, so that its persistent cache is empty; the latency log."""
    job = SCRATCH / f"{name}.fio"
    server = Emulating(STACK, "--scale", str(SCALE))
    server.command = [*TIMELY, *server.command]
    with server:
        lines = lines_of(name) + ["ioengine=nbd", f"uri={server.uri}"]
        job.write_text("\n".join(lines) + "\n", encoding="utf-8")
        begun = time.monotonic()
        subprocess.run([*TIMELY, "fio", "--output", SCRATCH / f"{name}.out", job], check=True, cwd=SCRATCH)
    print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    return SCRATCH / f"{name}_lat.1.log"


def simulated_log_of(name):
    """The same job in virtual time, where nothing but the drive takes any."""
    folder = SCRATCH / "simulated"
    folder.mkdir(exist_ok=True)
    job = folder / f"{name}.fio"
    job.write_text("\n".join(lines_of(name)) + "\n", encoding="utf-8")
    subprocess.run([IMBREX, "drive", "fio", STACK, job, "--scale", str(SCALE)], check=True, cwd=folder,
                   stdout=subprocess.DEVNULL)
    return folder / f"{name}_lat.1.log"


def fit(*logs):
    return json.loads(subprocess.run(
        [IMBREX, "drive", "fit", *logs, "--capacity", f"{capacity}B", "--json"],
        check=True, stdout=subprocess.PIPE).stdout)


fitted = fit(*[log_of(name) for name in CHANGES])
simulated = fit(simulated_log_of("seek"))["seek"]
seek, small = fitted["seek"], fitted["small_writes"]


def ms(text):
    return float(text.removesuffix(" ms"))


def seek_ms(curve, distance):
    """A fitted curve at a share of the stroke."""
    short = min(distance, curve["knee"])
    return curve["short_ms"] + curve["root_ms"] * short ** 0.5 + curve["slope_ms"] * (distance - short)


bands = [int(mib) for mib in re.fullmatch(r"uniform:(\d+)MiB\.\.(\d+)MiB", drive["translation"]["bands"]).groups()]
cache_gb = float(drive["translation"]["persistent_cache"].removesuffix(" GB"))
rows = [
    ("persistent cache, bytes", fitted["persistent_cache_bytes"], cache_gb * 1e9 / SCALE),
    ("entries", small["entries"], drive["translation"]["entries"] / SCALE),
    ("mean band, bytes", small["band_bytes"], sum(bands) / 2 * 2**20),
    ("revolution, ms", seek["revolution_ms"], 60_000 / drive["platters"]["rpm"]),
    ("average seek, ms", seek["average_ms"], ms(drive["seek"]["average"])),
    ("full stroke, ms", seek_ms(seek, 1), ms(drive["seek"]["full_stroke"])),
]
# Between the figures of the drive file, what virtual time gives stands for the curve.
rows += [(f"seek over {share} of the stroke, ms", seek_ms(seek, share), seek_ms(simulated, share))
         for share in (0.05, 0.1, 0.3, 0.6)]
for what, found, truth in rows:
    print(f"{what}: fitted {found:.6g}, should be {truth:.6g}, {100 * (found / truth - 1):+.1f} %")
print(f"{small['cleans']} cleans of {small['clean_s']:.3f} s")
assert small["entries_are_limit"]
wrong = [what for what, found, truth in rows if abs(found / truth - 1) > TOLERANCE]
assert not wrong, f"not within {TOLERANCE:.0%}: {', '.join(wrong)}"
