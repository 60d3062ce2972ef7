#!/usr/bin/env python3
"""Serving on a tmpfs, beside nbdkit's file plugin and, where it is there, qemu-nbd.

The first table is of `lru` with a cache larger than the device, so that every request is a hit: random requests of several sizes, on a
device that was filled in sequence and on the same after four rounds of random 4 KiB writes. The second is of 4 KiB at queue depth 32, with
`raid1` over two plain disks and `raid4smr` over three homes, a data disk and a parity disk. All are durable. The servers take turns, three
times each; the figures are medians. The files of the first table take their room from the tmpfs beforehand, 3 GiB. Beside the rates stands
the processor time of the server for an operation: a busy machine gives more of itself to a server of many threads. Runs during which
others had more than half a processor are marked. Needs fio (with its nbd engine) and nbdkit.

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
MEASURE_S = 3
# Kilobytes of a request and requests in flight.
SIZES = ((4, 1), (4, 32), (128, 8), (1024, 4))
# Rounds of random writes of 4 KiB that make a filled device a used one.
ROUNDS_OF_USE = 4
# Processors that others may have while it is measured.
OTHERS_MAX = 0.5
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
    """Runs one job and answers how many operations it made, and those per second."""
    result = scratch / "fio.json"
    subprocess.run(
        ["fio", f"--name={name}", "--ioengine=nbd", f"--uri={uri}", "--bs=4k", "--iodepth=32",
         f"--size={device_mib}M", "--randrepeat=1", "--output-format=json",
         f"--output={result}", *options],
        stdout=subprocess.DEVNULL, check=True, cwd=scratch)
    text = result.read_text(encoding="utf-8")
    # What fio remarks on comes before the document.
    job = json.loads(text[text.index("{"):])["jobs"][0]
    ways = job["read"], job["write"]
    return sum(way["total_ios"] for way in ways), sum(way["iops"] for way in ways)


def process_s(pid):
    """Seconds of processor time that a process has had."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    words = text[text.rindex(")") + 2:].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def machine_s():
    """Seconds of processor time that the machine has spent on anything."""
    words = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    times = [int(word) for word in words]
    # All but idle and waiting; the guests are in the others.
    return (sum(times[:8]) - times[3] - times[4]) / os.sysconf("SC_CLK_TCK")


def ours_s(pid):
    """What the server, fio and this script have had of it."""
    own = os.times()
    return process_s(pid) + own.user + own.system + own.children_user + own.children_system


class Result:
    """What was measured of a job: operations per second, microseconds of the server for each, and processors of others."""

    def __init__(self, uri, name, pid, scratch, device_mib, *options):
        server, ours, machine, began = process_s(pid), ours_s(pid), machine_s(), time.monotonic()
        operations, self.iops = fio(uri, name, scratch, device_mib, *options)
        elapsed = time.monotonic() - began
        self.us = 1e6 * (process_s(pid) - server) / operations
        self.others = max(0, machine_s() - machine - (ours_s(pid) - ours)) / elapsed


def accepts(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def measure(command, path, scratch, device_mib, jobs):
    """Starts a server, and answers what `jobs` measures there, by names."""
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
            found = jobs(uri, server.pid, scratch, device_mib)
        finally:
            server.send_signal(signal.SIGTERM)
    report = said.read_text(encoding="utf-8")
    if "lru" in command:
        run = json.loads(report)["runs"][0]
        missed = run["read_blocks"] - run["read_hits"], run["write_blocks"] - run["write_hits"]
        if missed[0] > 0 or missed[1] > device_mib << 8:
            sys.exit(f"not every request was a hit: {missed} blocks were not")
    return found


TIMED = ["--time_based", f"--runtime={MEASURE_S}", "--norandommap"]


def small_requests(uri, pid, scratch, device_mib):
    """4 KiB at queue depth 32 on a filled device."""
    fio(uri, "fill", scratch, device_mib, "--rw=write", "--bs=1M", "--iodepth=4")
    return {kind: Result(uri, kind, pid, scratch, device_mib, f"--rw=rand{kind}", *TIMED) for kind in ("read", "write")}


def every_size(uri, pid, scratch, device_mib):
    """Every size on a filled device and on a used one."""
    found = {}
    fio(uri, "fill", scratch, device_mib, "--rw=write", "--bs=1M", "--iodepth=4")
    is_used = False
    for state, kind in (("filled", "read"), ("filled", "write"), ("used", "read"), ("used", "write")):
        for kilobytes, depth in SIZES:
            if state == "used" and not is_used:
                fio(uri, "use", scratch, device_mib, "--rw=randwrite", f"--loops={ROUNDS_OF_USE}")
            # Writes put blocks in order again.
            is_used = state == "used" and kind == "read"
            job = [f"--rw=rand{kind}", f"--bs={kilobytes}k", f"--iodepth={depth}", *TIMED]
            found[state, kilobytes, depth, kind] = Result(uri, kind, pid, scratch, device_mib, *job)
    return found


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


def compare(servers, scratch, device_mib, jobs=small_requests):
    """Measures the servers in turn. Answers by the name of each and of what was measured the median rate and processor time; a
    rate is marked when others had much of the machine in a run."""
    results = {name: {} for name in servers}
    for pair in range(PAIRS):
        for name, command in servers.items():
            for what, found in measure(command, scratch / "s", scratch, device_mib, jobs).items():
                results[name].setdefault(what, []).append(found)
                mark = f", others had {found.others:.1f} processors" if found.others > OTHERS_MAX else ""
                words = what if isinstance(what, str) else " ".join(map(str, what))
                print(f"round {pair + 1}, {name:<12} {words:<20} {found.iops:>9,.0f} IOPS, {found.us:.1f} us{mark}", file=sys.stderr)
    return {name: {what: Median(found) for what, found in all_of.items()} for name, all_of in results.items()}


class Median:
    """The medians of several results of the same job."""

    def __init__(self, results):
        self.iops = statistics.median(result.iops for result in results)
        self.us = statistics.median(result.us for result in results)
        self.mark = " (busy)" if any(result.others > OTHERS_MAX for result in results) else ""


def row(what, ours, theirs, name):
    ratio = ours.iops / theirs.iops
    print(f"| {what} | {ours.iops:,.0f}{ours.mark} | {ours.us:.1f} | {name} | {theirs.iops:,.0f}{theirs.mark} | {theirs.us:.1f} | {ratio:.2f} | "
          f"{ours.us / theirs.us:.2f} |")
    return ratio


def table(medians, ours, theirs):
    """A row for reads and one for writes. Answers the ratios."""
    return {kind: row(f"{ours}, {kind}", medians[ours][kind], medians[theirs][kind], theirs) for kind in ("read", "write")}


def columns(what):
    return (f"| {what} | IOPS | us | Beside | IOPS | us | Rate | Processor time |\n|---|---:|---:|---|---:|---:|---:|---:|")


HEADING = columns("4 KiB random, queue depth 32")


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
            os.posix_fallocate(file.fileno(), 0, DEVICE_MIB << 20)
        others = {"nbdkit": ["nbdkit", "-f", "-U", scratch / "s", "file", image]}
        if shutil.which("qemu-nbd"):
            others["qemu-nbd"] = ["qemu-nbd", "-f", "raw", "-t", "--cache=writeback", "-k", scratch / "s", image]
        hits = {"lru": served_by("lru", scratch, DEVICE_MIB, "--preallocate", "--set", f"cache.capacity={DEVICE_MIB + 64}MiB")}
        sized = compare({**hits, **others}, scratch, DEVICE_MIB, every_size)
        print(columns("`lru`, every request a hit, random"))
        for (state, kilobytes, depth, kind), ours in sized["lru"].items():
            for name in others:
                what = f"{state}, {kilobytes} KiB, depth {depth}, {kind}"
                row(what, ours, sized[name][state, kilobytes, depth, kind], name)
        medians = compare({
            "nbdkit": others["nbdkit"],
            "raid1": served_array(scratch, DEVICE_MIB),
            "raid4smr": served_array(scratch, DEVICE_MIB, PARITY_ARRAY),
        }, scratch, DEVICE_MIB)
    print(f"\n{HEADING}")
    ratios = {kind: sized["lru"]["filled", 4, 32, kind].iops / sized["nbdkit"]["filled", 4, 32, kind].iops for kind in ("read", "write")}
    table(medians, "raid1", "nbdkit")
    table(medians, "raid4smr", "nbdkit")
    beside_md()
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(0 if min(ratios.values()) >= TARGET else f"less than {TARGET} of nbdkit's rate")


main()
