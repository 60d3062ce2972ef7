#!/usr/bin/env python3
"""The commands of docs/operating-an-array.md, typed as they stand there, with files where the page has disks. Its systemd units
are verified where there is systemd, what they start is started, and so is the line of cron."""

import os
import pathlib
import re
import shutil
import subprocess

import _recipes
from _recipes import FOLDER, TOOLS
from _serving import IMBREX, need

PAGE = "operating-an-array.md"
DISKS = {"ata-A": 96, "ata-B": 96, "ata-C": 128, "ata-D": 160}
LEFT_OUT = {}
PLACES = {
    "/dev/disk/by-id": FOLDER / "by-id",
    "/usr/local/bin/imbrex": pathlib.Path(IMBREX).resolve(),
    "/usr/local/lib/imbrex": FOLDER / "lib",
    "/etc/imbrex": FOLDER,
    "/var/lib/imbrex": FOLDER,
    "/run/imbrex": FOLDER,
}
need("nbdcopy", "qemu-img")


def put(line):
    """A line with the places of the test."""
    for place, here in PLACES.items():
        line = line.replace(place, str(here))
    return line


def named_files(language, comment):
    """The blocks that are files, by their path on the first line."""
    for _, lines in _recipes.blocks(PAGE, language):
        path = next(line for line in lines if line.startswith(f"{comment}/")).removeprefix(comment)
        yield path, "\n".join(map(put, lines)) + "\n"


def write_files():
    """The disks, the stack files, the units and the programs of the page."""
    (FOLDER / "by-id").mkdir()
    for name, mib in DISKS.items():
        # Other contents were on them before.
        (FOLDER / "by-id" / name).write_bytes(os.urandom(1 << 20))
        os.truncate(FOLDER / "by-id" / name, mib << 20)
    for _, lines in _recipes.blocks(PAGE, "toml"):
        if name := re.match('name = "(.+)"', lines[0]):
            (FOLDER / f"{name[1]}.toml").write_text("\n".join(map(put, lines)) + "\n", encoding="utf-8")
    (FOLDER / "lib").mkdir()
    for path, text in named_files("bash", "# "):
        program = pathlib.Path(put(path))
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        subprocess.run(["sh", "-n", program], check=True)
    units = {}
    for path, text in named_files("ini", "# "):
        units[pathlib.Path(path).name] = text
        (FOLDER / "units").mkdir(exist_ok=True)
        (FOLDER / "units" / pathlib.Path(path).name).write_text(text, encoding="utf-8")
    return units


def check_units(units):
    """What systemd says of the units. Nothing is the only right answer."""
    if shutil.which("systemd-analyze") is None:
        print("there is no systemd here: its units are not verified")
        return
    instances = [name.replace("@.", "@mirror.") for name in units]
    environment = dict(os.environ, SYSTEMD_UNIT_PATH=f"{FOLDER / 'units'}:")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *instances], cwd=FOLDER / "units", env=environment,
                          capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if "imbrex" in line]
    assert done.returncode == 0 and not said, f"{done.returncode}: {done.stderr}"
    calendar = next(line for text in units.values() for line in text.splitlines() if line.startswith("OnCalendar="))
    subprocess.run(["systemd-analyze", "calendar", calendar.split("=")[1]], check=True, stdout=subprocess.DEVNULL)
    print(f"systemd has verified {', '.join(sorted(units))}")


def started_by(unit):
    """The command of a unit, as `imbrex ...`."""
    command = next(line for line in unit.splitlines() if line.startswith("ExecStart=")).removeprefix("ExecStart=")
    return command.replace(str(PLACES["/usr/local/bin/imbrex"]), "imbrex").replace("%i", "mirror")


def main():
    _recipes.prepare()
    units = write_files()
    check_units(units)
    # It knows the units of the page and no others.
    (TOOLS / "systemctl").write_text(
        "#!/bin/sh\nfor word; do case $word in\n"
        + "".join(f"{name.replace('@.', '@mirror.')}) ;;\n" for name in units)
        + "daemon-reload|enable|--now) ;;\n*) exit 1 ;; esac; done\n", encoding="utf-8")
    (TOOLS / "systemctl").chmod(0o755)
    (TOOLS / "logger").write_text(f'#!/bin/sh\necho "$@" >> {FOLDER}/logged\n', encoding="utf-8")
    (TOOLS / "logger").chmod(0o755)
    (TOOLS / "mail").write_text("#!/bin/sh\ncat > /dev/null\n", encoding="utf-8")
    (TOOLS / "mail").chmod(0o755)
    _recipes.play(PAGE, LEFT_OUT, 30, put)
    check_events()
    # What systemd and cron start.
    (cron,) = [lines for _, lines in _recipes.blocks(PAGE, "cron")]
    scrub = re.sub(r"^\S+ \S+ \S+ \S+ \S+ root ", "", put(cron[0])).replace(str(PLACES["/usr/local/bin/imbrex"]), "imbrex")
    _recipes.play_blocks([("units", [started_by(units["imbrex-mirror.service"])]),
                          ("units", [started_by(units["imbrex-scrub@.service"]), scrub])])
    logged = FOLDER / "logged"
    # Nobody waits for the commands of events.
    _recipes.wait_until(lambda: logged.exists() and logged.read_text(encoding="utf-8").count("scrub-ended") == 2,
                        "both scrubs were told of")


def check_events():
    """The page has a line for every event that there was, and all ended well."""
    events = (FOLDER / "events.log").read_text(encoding="utf-8").splitlines()
    kinds = {line.split(":")[0] for line in events}
    page = (_recipes.DOCS / PAGE).read_text(encoding="utf-8")
    for kind in kinds:
        assert f"`{kind}`" in page, f"the page does not know `{kind}`"
    assert {"member-lost", "rebuild-ended", "scrub-ended"} <= kinds, events
    assert sum("it has all of its blocks again" in line for line in events) == 2, events


main()
