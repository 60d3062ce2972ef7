#!/usr/bin/env python3
"""Serving, beside nbdkit's file plugin: 4 KiB random reads and writes at queue depth 32 on a tmpfs.

One stack is `lru` with a cache larger than the device, filled first, so that every request is a hit. The others are
`raid1` over two plain disks and `raid4smr` over three homes, a data disk and a parity disk, durable. The servers take turns, three times each; the figures are medians. Needs fio (with
its nbd engine) and nbdkit.

Where ../shared/guest is there, and mdadm, the array stands beside RAID 1 of the Linux kernel in that guest: both have
members on a tmpfs, and that of the kernel is served by nbdkit. Figures of the guest compare with each other alone.
"""

import argparse
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
# Memory of the guest is slow.
GUEST_DEVICE_MIB = 64
PAIRS = 3
MEASURE_S = 5
START_TIMEOUT_S = 30
# Of `lru`, which is hit by every request.
TARGET = 0.35
ARRAY = """
name = "mirror"

[[node]]
name = "disk-0"
kind = "disk"
drive = "wd-4tb-7200"

[[node]]
name = "disk-1"
kind = "disk"
drive = "wd-4tb-7200"

[[node]]
name = "array"
kind = "raid1"
below = ["disk-0", "disk-1"]
"""
DISK = """
[[node]]
name = "{}"
kind = "disk"
drive = "{}"
"""
HOMES = ("home-0", "home-1", "home-2")
# Short bands, so that band rows are collected while it is measured.
PARITY_ARRAY = 'name = "parity-array"\n' + "".join(
    DISK.format(name, "st5000as0011" if name in HOMES else "wd-4tb-7200") for name in (*HOMES, "data", "parity")) + """
[[node]]
name = "array"
kind = "raid4smr"
below = { homes = ["home-0", "home-1", "home-2"], data = "data", parity = "parity" }
bands = "disk"
track_blocks = 20
band_tracks = 20
"""


def fio(uri, name, scratch, device_mib, *options):
    """Runs one job and answers its I/O operations per second."""
    result = scratch / "fio.json"
    subprocess.run(
        ["fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}", "--bs=4k", "--iodepth=32",
         f"--size={device_mib}M", "--norandommap", "--randrepeat=1", "--output-format=json",
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


def measure(command, path, scratch, device_mib):
    """Starts a server, fills the device, and answers the rates of reads and of writes."""
    said, uri = scratch / "said", f"nbd+unix:///?socket={path}"
    path.unlink(missing_ok=True)
    with open(said, "wb") as output, subprocess.Popen(
            [str(word) for word in command], stdout=output, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + START_TIMEOUT_S
            while not accepts(path):
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not start")
                time.sleep(0.02)
            fio(uri, "fill", scratch, device_mib, "--rw=write", "--bs=1M", "--iodepth=4")
            timed = ["--time_based", f"--runtime={MEASURE_S}"]
            rates = {kind: fio(uri, kind, scratch, device_mib, f"--rw=rand{kind}", *timed) for kind in ("read", "write")}
        finally:
            server.send_signal(signal.SIGTERM)
    report = said.read_text(encoding="utf-8")
    if "lru" in command:
        run = json.loads(report)["runs"][0]
        missed = run["read_blocks"] - run["read_hits"], run["write_blocks"] - run["write_hits"]
        if missed[0] > 0 or missed[1] > device_mib << 8:
            sys.exit(f"not every request was a hit: {missed} blocks were not")
    return rates


def served_by(stack, scratch, device_mib, *settings):
    """The command that serves a new image of a stack at the socket of the folder."""
    data = scratch / f"data-{pathlib.Path(stack).stem}"
    subprocess.run([IMBREX, "create", stack, "--data", data, "--size", f"{device_mib}MiB", *settings],
                   check=True, stdout=subprocess.DEVNULL)
    return [IMBREX, "serve", stack, "--data", data, "--socket", scratch / "s"]


def served_array(scratch, device_mib, text=ARRAY):
    stack = scratch / f"{'mirror' if text == ARRAY else 'parity'}.toml"
    stack.write_text(text, encoding="utf-8")
    return served_by(stack, scratch, device_mib)


def compare(servers, scratch, device_mib):
    """Measures the servers in turn. Answers by the name of each the medians of reads and of writes."""
    rates = {name: {"read": [], "write": []} for name in servers}
    for pair in range(PAIRS):
        for name, command in servers.items():
            for kind, iops in measure(command, scratch / "s", scratch, device_mib).items():
                rates[name][kind].append(iops)
                print(f"round {pair + 1}, {name:<12} {kind:<5} {iops:>9,.0f} IOPS", file=sys.stderr)
    return {name: {kind: statistics.median(found) for kind, found in kinds.items()} for name, kinds in rates.items()}


def table(medians, ours, theirs):
    """A row for reads and one for writes. Answers the ratios."""
    ratios = {kind: medians[ours][kind] / medians[theirs][kind] for kind in ("read", "write")}
    for kind, ratio in ratios.items():
        print(f"| {ours}, {kind} | {medians[ours][kind]:,.0f} | {theirs} | {medians[theirs][kind]:,.0f} | {ratio:.2f} |")
    return ratios


HEADING = "| 4 KiB random, queue depth 32 | IOPS | Beside | IOPS | Ratio |\n|---|---:|---|---:|---:|"


def in_guest():
    """The part that runs in the guest: the array beside that of its kernel, which /dev/md0 is."""
    scratch = pathlib.Path("/tmp/bench")
    scratch.mkdir()
    servers = {"raid1": served_array(scratch, GUEST_DEVICE_MIB), "md and nbdkit": ["nbdkit", "-f", "-U", scratch / "s", "file", "/dev/md0"]}
    table(compare(servers, scratch, GUEST_DEVICE_MIB), "raid1", "md and nbdkit")


# Members of a tmpfs. The bitmap in them is what the regions of `raid1` are: after a crash they alone are compared.
GUEST = f"""
set -e
for n in 0 1; do
  truncate -s {GUEST_DEVICE_MIB + 16}M /tmp/member-$n
  losetup /dev/loop$n /tmp/member-$n
done
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --bitmap=internal --metadata=1.2 --assume-clean /dev/loop0 /dev/loop1 >/tmp/mdadm 2>&1 || {{ cat /tmp/mdadm; exit 1; }}
IMBREX=/share/imbrex python3 /share/{pathlib.Path(__file__).name} --in-guest 2>/tmp/progress || {{ tail -5 /tmp/progress; exit 1; }}
"""


def beside_md():
    """Prints the rows of the guest, or why there are none."""
    os.environ["IMBREX"] = str(IMBREX)
    sys.path.insert(0, str(ROOT / "tests/e2e"))
    import _guest
    if not _guest.RUNNER.exists():
        return print("\nskipped: RAID 1 of the Linux kernel (../shared/guest is absent)")
    if shutil.which("mdadm") is None:
        return print("\nskipped: RAID 1 of the Linux kernel (mdadm is not installed)")
    with tempfile.TemporaryDirectory() as folder:
        share = pathlib.Path(folder) / "share"
        _guest.prepare(share)
        shutil.copy(__file__, share)
        try:
            said = _guest.run(GUEST, share, memory="2G")
        except AssertionError as error:
            return print(f"\nskipped: RAID 1 of the Linux kernel ({error})")
    print(f"\nIn the guest:\n\n{HEADING}\n{said.strip()}")


def main():
    parser = argparse.ArgumentParser(description="Measure serving beside other servers.")
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().in_guest:
        return in_guest()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for tool in ("fio", "nbdkit"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed: apt-get install fio nbdkit")
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        scratch = pathlib.Path(folder)
        image = scratch / "image"
        with open(image, "wb") as file:
            file.truncate(DEVICE_MIB << 20)
        medians = compare({
            "nbdkit": ["nbdkit", "-f", "-U", scratch / "s", "file", image],
            "lru": served_by("lru", scratch, DEVICE_MIB, "--set", f"cache.capacity={DEVICE_MIB + 64}MiB"),
            "raid1": served_array(scratch, DEVICE_MIB),
            "raid4smr": served_array(scratch, DEVICE_MIB, PARITY_ARRAY),
        }, scratch, DEVICE_MIB)
    print(HEADING)
    ratios = table(medians, "lru", "nbdkit")
    table(medians, "raid1", "nbdkit")
    table(medians, "raid4smr", "nbdkit")
    beside_md()
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(0 if min(ratios.values()) >= TARGET else f"less than {TARGET} of nbdkit's rate")


main()
