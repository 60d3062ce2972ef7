"""Stacks with a controller (`kind = "idle-control"`), how it is while it is served, and commands to it."""

import json
import pathlib
import re
import subprocess
import time

from _serving import IMBREX, SCRATCH

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
POLL_S = 0.02
# No wait for something that must happen is shorter.
PATIENCE_S = 60
# What is 64 zones of the host-aware drive.
DEVICE_BYTES = 16 << 30
# The drive: 2,000 entries and 64 zones; all else is that of the ST8000AS0022.
SMALL = {"name": '"small-host-aware"', "capacity": '"16 GiB"', "conventional_zones": "0", "entries": "2000", "persistent_cache": '"1 GiB"'}


def small_drive():
    """Writes the drive file of 64 zones."""
    text = (ROOT / "drives" / "st8000as0022.toml").read_text(encoding="utf-8")
    for key, value in SMALL.items():
        text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert found == 1, f"{key} stands {found} times"
    path = SCRATCH / "small-host-aware.toml"
    path.write_text(text, encoding="utf-8")
    return path


def stack(name, nodes, **keys):
    """A stack file of nodes, from the disk up, and a controller with these keys over the last; each node is its keys."""
    nodes = [*nodes, {"name": "controller", "kind": "idle-control", "below": nodes[-1]["name"], **keys}]
    tables = ("[[node]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in node.items()) for node in nodes)
    path = SCRATCH / f"{name}.toml"
    path.write_text(f'name = "{name}"\n' + "".join(tables), encoding="utf-8")
    return path


def host_aware(name, **keys):
    """A controller over the emulated host-aware drive of 64 zones, all of them full."""
    disk = {"name": "disk", "kind": "disk", "drive": str(small_drive())}
    translation = {"name": "translation", "kind": "persistent-cache", "below": "disk", "zones_filled": 1.0}
    return stack(name, [disk, translation], **keys)


def command(server, *words):
    """A command to a node of a server, as a finished process."""
    return subprocess.run([IMBREX, "control", f"{server.socket}.control", *words], capture_output=True, text=True)


def told(server, *words):
    """What a command that succeeds prints."""
    done = command(server, *words)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def status(server):
    """How the controller is; its counters stand under `facts`."""
    answer = json.loads(told(server, "controller", "status", "--json"))["ok"]
    return answer["controller"] | {"facts": answer["facts"]}


def wait_until(server, what, is_so):
    """Asks for the status until it is so, and answers that one."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so(now := status(server)):
        assert time.monotonic() < deadline, f"not seen in {PATIENCE_S} s: {what}; the controller says {now}"
        time.sleep(POLL_S)
    return now


def check(data):
    """`imbrex check --data` of an image finds nothing."""
    done = subprocess.run([IMBREX, "check", data, "--data"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "clean", done.stdout + done.stderr
