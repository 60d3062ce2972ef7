"""Arrays on plain files, for tests that break them while they are served."""

import json
import re
import subprocess
import time

from _kill import Killable
from _serving import IMBREX, SCRATCH

COMMAND_TIMEOUT_S = 120
# The members of a parity array with their drives, in the order of its ports. Tracks of a home overlap.
PARITY_DRIVES = {"home-0": "st5000as0011", "home-1": "st5000as0011", "home-2": "st5000as0011",
                 "data": "wd-4tb-7200", "parity": "wd-4tb-7200"}
HOMES = [name for name in PARITY_DRIVES if name.startswith("home-")]
SCRUB_ENDED = re.compile(r"the scrub is over; blocks that were wrong: (\d+), of them repaired: (\d+); "
                         r"blocks that could not be read: (\d+)")


def stack_file(name, members, spares=0, backing=None, **keys):
    """A `raid1` over disks of a file each, `disk-0` and so on. `backing` has by the name of a disk the file that it is
    to use. Answers the path of the stack file."""
    names = [f"disk-{number}" for number in range(members + spares)]
    text = f'name = "{name}"\n'
    for node in names:
        text += f'\n[[node]]\nname = "{node}"\nkind = "disk"\ndrive = "wd-4tb-7200"\n'
        if backing and node in backing:
            text += f'backing = "{backing[node]}"\n'
    text += f'\n[[node]]\nname = "array"\nkind = "raid1"\nbelow = {json.dumps(names[:members])}\n'
    if spares:
        text += f"spares = {json.dumps(names[members:])}\n"
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return written(name, text)


def parity_stack_file(name, backing=None, drives=None, **keys):
    """A `raid4smr` over the members of `PARITY_DRIVES`, each a file. Its bands are of 400 blocks, so that a band row
    is collected soon. `backing` is as above; `drives` has other ones for some members."""
    text = f'name = "{name}"\n'
    for node, drive in {**PARITY_DRIVES, **(drives or {})}.items():
        text += f'\n[[node]]\nname = "{node}"\nkind = "disk"\ndrive = "{drive}"\n'
        if backing and node in backing:
            text += f'backing = "{backing[node]}"\n'
    text += f'\n[[node]]\nname = "array"\nkind = "raid4smr"\nbelow = {{ homes = {json.dumps(HOMES)}, data = "data", '
    text += 'parity = "parity" }\n'
    keys = {"bands": "disk", "track_blocks": 20, "band_tracks": 20, **keys}
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    return written(name, text)


def written(name, text):
    path = SCRATCH / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


class Array(Killable):
    """A server of an array, which takes commands."""

    def command_line(self, node, *words):
        """The command line that gives a command to a node."""
        return [IMBREX, "control", f"{self.socket}.control", node, *words]

    def control(self, node, *words):
        """Gives a command to a node and waits for its end, which must be a good one. Answers what was said."""
        done = subprocess.run(self.command_line(node, *words), capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
        assert done.returncode == 0, f"{node} {' '.join(words)}: {done.stderr}{self.said()}"
        return done.stdout

    def begin(self, node, *words):
        """Gives a command to a node, and waits for nothing."""
        return subprocess.Popen(self.command_line(node, *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def facts(self, node="array"):
        """What `status` tells of a node."""
        return json.loads(self.control(node, "status", "--json"))["ok"]["facts"]

    def unreadable_blocks(self):
        """Blocks that no member has any more."""
        return json.loads(self.control("array", "status", "--json"))["ok"]["array"]["unreadable_blocks"]

    def scrub(self):
        """Scrubs the array. Answers how many blocks were wrong, were repaired and could not be read."""
        before = len(SCRUB_ENDED.findall(self.said()))
        self.control("array", "scrub")
        # The command may be answered before the log says so.
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while len(ended := SCRUB_ENDED.findall(self.said())) == before:
            assert time.monotonic() < deadline, f"nothing is said of the scrub: {self.said()}"
            time.sleep(0.02)
        return tuple(map(int, ended[-1]))

    def wait_until_whole(self, node="array"):
        """Waits until no member lacks anything. What is left to do is done without a command."""
        deadline = time.monotonic() + COMMAND_TIMEOUT_S
        while (facts := self.facts(node))["members_lacking"] > 0:
            assert time.monotonic() < deadline, f"a member still lacks blocks: {facts} {self.said()}"
            time.sleep(0.1)


def file_of(data, node):
    """The file of a disk: `NODE.img`, or after `replace` `NODE.NUMBER.img`."""
    found = list(data.glob(f"{node}.img")) + list(data.glob(f"{node}.*.img"))
    assert len(found) == 1, f"files of {node}: {found}"
    return found[0]


def check_image(data):
    """`imbrex check --data` must find nothing."""
    done = subprocess.run([IMBREX, "check", data, "--data"], capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    assert done.returncode == 0, f"check ended with {done.returncode}: {done.stdout}{done.stderr}"
