#!/usr/bin/env python3
"""Two emulated drives under load at a depth of 64: a random and a sequential job of fio on each of two volumes, whose logs lie on
the other drive, under C-LOOK by areas, move the arms at least 30 % less than the same jobs dealt to the two drives in turn, first
come, first served, and are done earlier. Both volumes have both jobs: with one each, a drive has more to do than the other, and
the jobs that take turns end first."""

# Alone: it measures how long the jobs take.

import json
import subprocess
import time

from _serving import SCRATCH, Emulating, need

need("fio")
DEPTH = 64
# With one request at the disk at a time each append to a log waits for a turn of it, on either side.
AT_THE_DISK = 8
# Where a job may go, and how many requests it has.
PART_GIB = 2000
RANDOM, SEQUENTIAL = 500, 300


def stack(name, node_of_volume, policy, top):
    """A stack file of two drives, each under a scheduler."""
    text = [f'name = "{name}"']
    for disk in range(2):
        text.append(f'[[node]]\nname = "disk-{disk}"\nkind = "disk"\ndrive = "st5000as0011"\nscheduler = "fcfs"\nwrite_cache = false')
        text.append(f'[[node]]\nname = "queue-{disk}"\nkind = "scheduler"\nbelow = "disk-{disk}"\npolicy = "{policy}"\n'
                    f'device_depth = {AT_THE_DISK}')
    text += node_of_volume
    text.append(top)
    path = SCRATCH / f"{name}.toml"
    path.write_text("\n".join(text) + "\n")
    return path


def volume(number, below):
    return (f'[[node]]\nname = "volume-{number}"\nkind = "persistent-cache"\nbelow = {below}\nbypass = "on"\n'
            'bypass_streams = 32\nidle_after = "off"')


def split():
    nodes = []
    for disk in range(2):
        nodes.append(f'[[node]]\nname = "log-{disk}"\nkind = "slice"\nbelow = "queue-{disk}"\noffset = "0"\nsize = "32GiB"')
        nodes.append(f'[[node]]\nname = "home-{disk}"\nkind = "slice"\nbelow = "queue-{disk}"\noffset = "32GiB"\nsize = "4600GiB"')
    nodes += [volume(it, f'{{ log = "log-{1 - it}", home = "home-{it}" }}') for it in range(2)]
    return stack("split-two", nodes, "area-c-look", '[[node]]\nname = "volumes"\nkind = "span"\nbelow = ["volume-0", "volume-1"]')


def dealt():
    """The same drives, whose chunks of 64 KiB take turns."""
    nodes = [volume(it, f'"queue-{it}"') for it in range(2)]
    top = '[[node]]\nname = "volumes"\nkind = "stripe"\nchunk = "64KiB"\nbelow = ["volume-0", "volume-1"]'
    return stack("dealt-two", nodes, "fcfs", top)


def jobs(uri_of, start_of):
    """The jobs, all at once. Each volume has one that reads and writes anywhere and one that writes on and on."""
    command = ["fio", "--ioengine=nbd", "--direct=1", "--output-format=json", "--randseed=7", "--norandommap",
               f"--output={SCRATCH / 'fio.json'}"]
    for volume in range(2):
        start = start_of(volume)
        shared = [f"--uri={uri_of(volume)}", f"--iodepth={DEPTH // 4}", f"--size={PART_GIB}g"]
        command += [f"--name=random-{volume}", "--rw=randrw", "--bs=8k", f"--offset={start}g", f"--number_ios={RANDOM}", *shared]
        command += [f"--name=sequential-{volume}", "--rw=write", "--bs=64k", f"--offset={start + PART_GIB}g",
                    f"--number_ios={SEQUENTIAL}", *shared]
    return command


def measure(stack_file, by_export):
    with Emulating(stack_file) as server:
        if by_export:
            command = jobs(lambda it: f"nbd+unix:///volume-{it}?socket={server.socket}", lambda _: 0)
        else:
            command = jobs(lambda _: server.uri, lambda it: 2 * PART_GIB * it)
        begun = time.monotonic()
        subprocess.run(command, check=True, cwd=SCRATCH, stdout=subprocess.DEVNULL)
        took = time.monotonic() - begun
    told = json.loads((SCRATCH / "fio.json").read_text())["jobs"]
    done = sum(job[way]["total_ios"] for job in told for way in ("read", "write"))
    assert done >= 2 * (RANDOM + SEQUENTIAL) and all(job["error"] == 0 for job in told), done
    run = server.run_report()
    return run["seek_time_s"], took, done


results = {}
for name, file, by_export in (("dealt in turn, first come, first served", dealt(), False),
                              ("split, C-LOOK by areas", split(), True)):
    results[name] = measure(file, by_export)
    seek_s, took_s, done = results[name]
    print(f"{name}: {done} requests, arms moved {seek_s:.2f} s, done in {took_s:.1f} s")
(dealt_seek, dealt_took, dealt_done), (split_seek, split_took, split_done) = results.values()
print(f"seek time {split_seek / dealt_seek:.2f}, wall time {split_took / dealt_took:.2f}")
assert dealt_done == split_done, "they did the same"
assert split_seek <= 0.7 * dealt_seek, "it moves the arms as much"
assert split_took < dealt_took, "it is not done earlier"
