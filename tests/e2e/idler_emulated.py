#!/usr/bin/env python3
"""A controller over an emulated host-aware drive of 64 zones and 2,000 entries. fio writes and verifies while it is on, off and on;
what it takes the drive to hold grows meanwhile, and goes when the drive has cleaned and reported its zones."""

# Alone: the drive cleans in wall time while requests are held.

import subprocess
import time

from _idler import host_aware, status, told, wait_until
from _serving import SCRATCH, Emulating, need

need("fio")
# One zone is written, which the drive then cleans as a whole. At this pace requests are slower than the drive.
FIO = ["fio", "--name=verify", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--size=256M", "--number_ios=300", "--iodepth=4",
       "--rate_iops=,30", "--verify=crc32c", "--verify_fatal=1", "--randseed=1"]
REPORT_S = 10

path = host_aware("idler-emulated", policy="idler", u_low=0.01, u_high=0.5, l_min_s=0.4, report_zones_every_s=REPORT_S)
with Emulating(path) as server:
    fio = subprocess.Popen([*FIO, f"--uri={server.uri}"], cwd=SCRATCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    held = wait_until(server, "a request is held", lambda now: now["held"] > 0)
    assert held["phase"] in ("draining", "idle") and held["idle_s"] == 0.4 and held["used"] >= 0.01, held
    told(server, "controller", "off")
    off = status(server)
    assert not off["is_on"] and off["phase"] == "execution" and off["held"] == 0, off
    time.sleep(1.5)
    later = status(server)
    assert later["used"] > off["used"], f"the books stand still while it is off: {off} and {later}"
    assert later["facts"]["idles"] == off["facts"]["idles"] and later["held"] == 0, f"{off} and {later}"
    told(server, "controller", "on")
    again = wait_until(server, "an idle period after that", lambda now: now["facts"]["idles"] > off["facts"]["idles"])
    assert again["is_on"], again
    said, _ = fio.communicate(timeout=120)
    assert fio.returncode == 0, f"fio: {said}"
    full = status(server)["used"]
    assert full > 0.1, f"300 writes took {full}"
    clean = wait_until(server, "a report of clean zones", lambda now: now["used"] == 0)
run = server.run_report()["nodes"]
assert run["translation"]["idle_cleanings"] >= 1 and run["translation"]["zone_reports"] >= 2, run["translation"]
print(f"{again['facts']['idles']} idle periods of {held['idle_s']} s; U from {held['used']:.3f} to {full:.3f}, and {clean['used']:.0f} when the "
      f"drive had cleaned {run['translation']['idle_cleanings']} zones and reported them")
