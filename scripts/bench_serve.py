#!/usr/bin/env python3
"""Serving, beside nbdkit's file plugin: 4 KiB random reads and writes at queue depth 32 on a tmpfs.

The stack is `lru` with a cache larger than the device, filled first, so that every request is a hit. The two
servers take turns, three times each; the figures are medians. Needs fio (with its nbd engine) and nbdkit.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMBREX = os.environ.get("IMBREX") or ROOT / "target/release/imbrex"
MEMORY = pathlib.Path("/dev/shm")
DEVICE_MIB = 256
PAIRS = 3
MEASURE_S = 5
START_TIMEOUT_S = 30
TARGET = 0.35


def fio(uri, name, scratch, *options):
    """Runs one job and answers its I/O operations per second."""
    result = scratch / "fio.json"
    subprocess.run(
        ["fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}", "--bs=4k", "--iodepth=32",
         f"--size={DEVICE_MIB}M", "--norandommap", "--randrepeat=1", "--output-format=json",
         f"--output={result}", *options],
        stdout=subprocess.DEVNULL, check=True, cwd=scratch)
    text = result.read_text(encoding="utf-8")
    # What fio remarks on comes before the document.
    job = json.loads(text[text.index("{"):])["jobs"][0]
    return job["read"]["iops"] + job["write"]["iops"]


def accepts(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def measure(command, uri, path, scratch):
    """Starts a server, fills the device, and answers the rates of reads and of writes."""
    said = scratch / "said"
    with open(said, "wb") as output, subprocess.Popen(
            [str(word) for word in command], stdout=output, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not accepts(path):
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not start")
                time.sleep(0.02)
            fio(uri, "fill", scratch, "--rw=write", "--bs=1M", "--iodepth=4")
            timed = ["--time_based", f"--runtime={MEASURE_S}"]
            rates = {kind: fio(uri, kind, scratch, f"--rw=rand{kind}", *timed) for kind in ("read", "write")}
        finally:
            server.send_signal(signal.SIGTERM)
    report = said.read_text(encoding="utf-8")
    if report:
        run = json.loads(report)["runs"][0]
        missed = run["read_blocks"] - run["read_hits"], run["write_blocks"] - run["write_hits"]
        if missed[0] > 0 or missed[1] > DEVICE_MIB << 8:
            sys.exit(f"not every request was a hit: {missed} blocks were not")
    return rates


def main():
    for tool in ("fio", "nbdkit"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: apt-get install fio nbdkit")
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        scratch = pathlib.Path(folder)
        image, data, path = scratch / "image", scratch / "data", scratch / "s"
        with open(image, "wb") as file:
            file.truncate(DEVICE_MIB << 20)
        subprocess.run([IMBREX, "create", "lru", "--data", data, "--size", f"{DEVICE_MIB}MiB",
                        "--set", f"cache.capacity={DEVICE_MIB + 64}MiB"],
                       check=True, stdout=subprocess.DEVNULL)
        servers = {
            "nbdkit": ["nbdkit", "-f", "-U", path, "file", image],
            "imbrex": [IMBREX, "serve", "lru", "--data", data, "--socket", path],
        }
        rates = {name: {"read": [], "write": []} for name in servers}
        for pair in range(PAIRS):
            for name, command in servers.items():
                path.unlink(missing_ok=True)
                measured = measure(command, f"nbd+unix:///?socket={path}", path, scratch)
                for kind, iops in measured.items():
                    rates[name][kind].append(iops)
                    print(f"pair {pair + 1}, {name:<6} {kind:<5} {iops:>9,.0f} IOPS", file=sys.stderr)
    print("| 4 KiB random, queue depth 32 | Imbrex | nbdkit | ratio |\n|---|---:|---:|---:|")
    good = True
    for kind in ("read", "write"):
        ours, theirs = (statistics.median(rates[name][kind]) for name in ("imbrex", "nbdkit"))
        good &= ours >= TARGET * theirs
        print(f"| {kind} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |")
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(0 if good else f"less than {TARGET} of nbdkit's rate")


main()
