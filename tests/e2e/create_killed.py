#!/usr/bin/env python3
"""`imbrex create` killed at its system calls, one run a call: what is left is never an image unless it is a whole one,
and the same command makes it afterwards and leaves nothing else in the folder. One whose system calls fail leaves no
file at all. A file of somebody else that is called like what a killed creation leaves is refused, and stays."""

import subprocess

from _serving import IMBREX, SCRATCH, need

need("strace")
if subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], check=False).returncode != 0:
    print("skipped: strace may not trace here")
    raise SystemExit(77)

# With the calls at which to kill: each rename and each new file, some of the others.
CALLS = {"renameat2": range(1, 9), "ftruncate": range(1, 9), "mkdir": range(1, 9), "fsync": range(1, 30),
         "fdatasync": range(1, 90, 4), "pwrite64": [*range(1, 9), *range(13, 400, 12)]}
WHOLE = ["image", "smr.img", "ssd.img"]
KILLED = 137


def create(data, *tracer):
    command = [*tracer, IMBREX, "create", "lru", "--data", data, "--size", "16MiB"]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def status(done):
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


kills = 0
for call, numbers in CALLS.items():
    for number in numbers:
        data = SCRATCH / f"{call}-{number}" / "data"
        data.parent.mkdir()
        trace = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                 f"inject={call}:signal=KILL:when={number}"]
        first = create(data, *trace)
        left = sorted(path.name for path in data.iterdir()) if data.exists() else []
        if status(first) == 0:
            assert left == WHOLE, left
            break
        assert status(first) == KILLED, (call, number, first)
        kills += 1
        again = create(data)
        if "image" in left:
            assert left == WHOLE, left
            assert "there is already an image" in again.stderr, again
        else:
            assert again.returncode == 0, f"killed at {call} {number}, left {left}: {again.stderr}"
        assert sorted(path.name for path in data.iterdir()) == WHOLE
        subprocess.run([IMBREX, "check", data, "--data"], check=True, capture_output=True)
    else:
        print(f"{call}: not killed after the last of {numbers}")

failures = 0
for call, numbers in {"renameat2": range(1, 4), "fsync": (1, 4, 7, 8, 9), "ftruncate": (1, 2), "fdatasync": (1, 2)}.items():
    for number in numbers:
        data = SCRATCH / f"failed-{call}-{number}"
        trace = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error=EIO:when={number}"]
        failed = create(data, *trace)
        assert failed.returncode == 1, failed
        failures += 1
        assert list(data.glob("*")) == [], f"{call} {number}: {list(data.iterdir())}"
        assert create(data).returncode == 0, f"after {call} {number} failed"
assert failures >= 10, failures

print(f"{failures} creations failed and left nothing")


def refuses(name, *settings):
    """Nothing says that the file was left by a creation: one error names it, and it stays as it is."""
    path = SCRATCH / "mine" / name
    before = path.stat()
    command = [IMBREX, "create", "lru", "--data", path.parent, "--size", "16MiB", *settings]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("imbrex:") == 1, done
    expected = f"cannot create {path}: there is such a file, and nothing says that this program has left it"
    assert expected in done.stderr, done
    after = path.stat()
    assert [it.name for it in path.parent.iterdir()] == [name]
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it was written"
    path.unlink()


(SCRATCH / "mine").mkdir()
for mine in ("ssd.img.new", "smr.img.new"):
    (SCRATCH / "mine" / mine).write_text("mine")
    refuses(mine)
# A hole from end to end, but the disk of another node.
hole = SCRATCH / "mine" / "ssd.img.new"
with open(hole, "wb") as file:
    file.truncate(16 << 30)
refuses(hole.name, "--set", f"smr.backing={hole}")
print(f"{kills} creations killed, each followed by a whole one")
assert kills >= 20, kills
