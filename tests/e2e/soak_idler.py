#!/usr/bin/env python3
"""What a controller gains and costs in wall time. PARTS names some of its parts:

- `tail`: an emulated host-aware drive of 64 zones and 2,000 entries, ten requests of 4 KiB in a second as a Poisson process, half of them
  writes, anywhere, for ten minutes. The 99.9th percentile of the response times is at most half of that without control.
- `depth`: an emulated drive-managed drive, which reports no zones, and 16 requests of fio outstanding. The controller brings about idle
  periods, and all is done less than 57 % later than without.
- `pgbench`: PostgreSQL on a controller with either `on_flush`, in a guest kernel: it runs through kills of the server, and nothing is lost."""

# Alone: it measures response times.

import glob
import json
import os
import re
import subprocess
import sys

import _open_loop
from _guest import need_guest, prepare, run
from _idler import DEVICE_BYTES, host_aware, stack
from _serving import SCRATCH, Emulating, need

PARTS = os.environ.get("PARTS", "tail depth pgbench").split()
SEED = 7
TAIL_S, PER_S, WRITE_SHARE = 600, 10, 0.5
# fio at a depth of 16 on a drive of a 512th: its log is full of entries after some seconds.
SCALE, DEPTH, REQUESTS = 512, 16, 1500
LATER_MAX = 1.57
ROUNDS = 2
GUEST_TIMEOUT_S = 3 * 3600
# A small cache, and holds at little of it, so that a short run has many.
HOLDING = {"u_low": 0.01, "u_high": 0.02, "l_min_s": 0.05, "l_max_s": 0.2, "report_zones_every_s": 0.5, "media_cache": "4 MiB",
           "trigger_s": 0.02, "zone_clean_s": 0.02}
CONTROL = {"none": {"policy": "none"}, "idler": {"policy": "idler", "report_zones_every_s": 10}}


def tail():
    p99_9 = {}
    requests = _open_loop.poisson(SEED, PER_S, TAIL_S, DEVICE_BYTES // _open_loop.BLOCK, WRITE_SHARE)
    for name, keys in CONTROL.items():
        with Emulating(host_aware(f"tail-{name}", **keys)) as server:
            times, late = _open_loop.run(server.socket, requests)
        nodes = server.run_report()["nodes"]
        drive, control = nodes["translation"], nodes["controller"]
        shown = {share: _open_loop.percentile(times, share) for share in (0.5, 0.99, 0.999, 1.0)}
        p99_9[name] = shown[0.999]
        print(f"tail, {name}: {len(times)} requests, {late} issued late; "
              + ", ".join(f"P{100 * share:g} {time:.3f} s" for share, time in shown.items())
              + f"; {drive['blocking_periods']} blocking periods of {drive['blocking_ns'] / 1e9:.1f} s in all, "
              f"{100 * drive['served_in_blocking'] / len(times):.2f} % of the requests served in them; zones cleaned: "
              f"{drive['blocking_cleanings']} in blocking, {drive['idle_cleanings']} idle; {control['idles']} idle periods, "
              f"{control['idle_ns'] / 1e9:.1f} s", flush=True)
        # What takes the drive longer than its model is the machine.
        cleaned = drive["blocking_cleanings"]
        if cleaned:
            print(f"  {drive['blocking_ns'] / 1e9 / cleaned:.2f} s for a zone in blocking", flush=True)
        assert drive["served_in_blocking"] >= 0.0015 * len(times) or name == "idler", "without control it hardly blocks"
    assert p99_9["idler"] <= p99_9["none"] / 2, f"P99.9 {p99_9}"


def depth():
    took_s = {}
    for name, keys in CONTROL.items():
        nodes = [{"name": "disk", "kind": "disk", "drive": "st5000as0011"},
                 {"name": "translation", "kind": "persistent-cache", "below": "disk"}]
        with Emulating(stack(f"depth-{name}", nodes, **keys), "--scale", str(SCALE)) as server:
            subprocess.run(
                ["fio", "--name=depth", "--ioengine=nbd", f"--uri={server.uri}", "--rw=randrw", "--bs=4k", f"--iodepth={DEPTH}",
                 "--norandommap", f"--number_ios={REQUESTS}", f"--randseed={SEED}", "--lat_percentiles=1", "--output-format=json",
                 "--output", SCRATCH / "fio.json"], check=True, cwd=SCRATCH)
        job = json.loads((SCRATCH / "fio.json").read_text(encoding="utf-8"))["jobs"][0]
        took_s[name] = job["job_runtime"] / 1000
        nodes = server.run_report()["nodes"]
        control, drive = nodes["controller"], nodes["translation"]
        times = {way: job[way]["lat_ns"]["percentile"]["99.900000"] / 1e9 for way in ("read", "write")}
        print(f"depth, {name}: {took_s[name]:.1f} s; P99.9 of reads {times['read']:.2f} s, of writes {times['write']:.2f} s; "
              f"{control['idles']} idle periods, {control['idle_ns'] / 1e9:.1f} s; bands cleaned: {drive['bands_rewritten']}, of these "
              f"{drive['idle_cleanings']} idle", flush=True)
        assert (control["idles"] > 0) == (name == "idler"), f"{name}: {control}"
    assert took_s["idler"] < LATER_MAX * took_s["none"], f"{took_s}"


def pgbench():
    need("nbd-client", "mkfs.ext4", "e2fsck", "setpriv")
    if not glob.glob("/usr/lib/postgresql/*/bin/pg_checksums"):
        print("skipped: PostgreSQL is not installed")
        sys.exit(77)
    need_guest()
    share = SCRATCH / "share"
    prepare(share, "_postgresql_guest.sh")
    nodes = [{"name": "disk", "kind": "disk", "drive": "st5000as0011"},
             {"name": "translation", "kind": "persistent-cache", "below": "disk", "bands": "fixed:2MiB", "persistent_cache": "32MiB"}]
    for on_flush in ("end-idle", "hold"):
        path = stack(f"pgbench-{on_flush}", nodes, policy="idler", on_flush=on_flush, **HOLDING)
        path.rename(share / path.name)
        output = run(f"/share/_postgresql_guest.sh /share/imbrex /share/data-{on_flush} {ROUNDS} /share/{path.name}", share,
                     memory="3G", timeout_s=GUEST_TIMEOUT_S)
        print(f"pgbench, on_flush = {on_flush}:")
        print(output, flush=True)
        assert output.count("checksums, amcheck and e2fsck clean") == ROUNDS, on_flush
        idles = [int(count) for count in re.findall(r"(\d+) idle periods, ", output)]
        assert len(idles) == ROUNDS and all(idles), f"on_flush = {on_flush}: idle periods before the kills: {idles}"


need("fio")
PARTS_BY_NAME = {"tail": tail, "depth": depth, "pgbench": pgbench}
for part in PARTS:
    assert part in PARTS_BY_NAME, f"PARTS={part}: accepted: {' '.join(PARTS_BY_NAME)}"
# What may lack its tools comes last.
for part, play in PARTS_BY_NAME.items():
    if part in PARTS:
        play()
