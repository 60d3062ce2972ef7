#!/usr/bin/env python3
"""The units that `make install` installs: systemd verifies them, and what the server's unit starts, with the files and the
image of docs/serving.md, serves until the signal of the unit ends it in order. The device of the kernel and its mount need a
machine that systemd has started, so they are verified alone."""

import os
import pathlib
import re
import shlex
import signal
import subprocess

import _recipes
from _recipes import FOLDER
from _serving import IMBREX, SCRATCH, STOP_TIMEOUT_S, need

ROOT = _recipes.DOCS.parent
SERVER, DEVICE, MOUNT = "imbrex-serve@.service", "imbrex-nbd@.service", "srv-disk.mount"
HEADING = "Under systemd"
PREFIX = SCRATCH / "prefix"
# A path of a socket is short.
PLACES = {"/var/lib/imbrex": FOLDER, "/run/imbrex": FOLDER / "run"}


def put(text):
    for place, here in PLACES.items():
        text = text.replace(place, str(here))
    return text


def block(language):
    """The lines of the blocks of the page in that language, below the heading of systemd."""
    found = [lines for heading, lines in _recipes.blocks("serving.md", language) if heading == HEADING]
    assert found, f"docs/serving.md has no {language} below {HEADING}"
    return [line for lines in found for line in lines]


def install():
    """Answers the folder of the units and the path of the example."""
    subprocess.run(["make", "--no-print-directory", "install", "-o", "build", f"IMBREX={IMBREX}", f"PREFIX={PREFIX}"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    return PREFIX / "lib/systemd/system", PREFIX / "share/doc/imbrex/examples" / MOUNT


def verify(units, example):
    """What systemd says of the units, those of the page among them by name. Nothing is the only right answer."""
    need("systemd-analyze")
    verified = SCRATCH / "units"
    verified.mkdir()
    for path in (units / SERVER, units / DEVICE, example):
        text = path.read_text(encoding="utf-8")
        for program in set(re.findall(r"^Exec\w+=-?(\S+)", text, re.MULTILINE)):
            if not os.access(program, os.X_OK):
                print(f"{program} is not installed: `true` stands for it")
                text = text.replace(program, "/bin/true")
        (verified / path.name).write_text(text, encoding="utf-8")
    names = [SERVER.replace("@", "@disk"), DEVICE.replace("@", "@disk"), MOUNT]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *names], cwd=verified, capture_output=True, text=True,
                          timeout=60, env=dict(os.environ, SYSTEMD_UNIT_PATH=f"{verified}:"))
    said = [line for line in done.stderr.splitlines() if "imbrex" in line or MOUNT in line]
    assert done.returncode == 0 and not said, f"{done.returncode}: {done.stderr}"
    for line in block("sh"):
        for name in re.findall(r"\S+\.(?:service|mount)", line):
            assert pathlib.Path(name).name in names, f"{line}\nnames no unit that there is"
    print(f"systemd has verified {', '.join(names)}")


def values(unit, key):
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


def environment():
    """The file of variables that the page shows."""
    lines = [line for line in block("ini") if not line.startswith("#")]
    assert block("ini")[0] == "# /etc/default/imbrex-disk"
    return {name: put(value) for name, value in (line.split("=", 1) for line in lines)}


def command(line, variables):
    """The words of a command of a unit, as systemd makes them."""
    words = []
    for word in shlex.split(put(line.replace("%i", "disk"))):
        if word.startswith("$") and word[1:] in variables:
            words += variables[word[1:]].split()
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda name: variables[name[1]], word))
    return words


def serve(unit):
    """Does what the unit of the server says."""
    create = next(line for line in block("sh") if line.startswith("imbrex create"))
    subprocess.run(shlex.split(put(create)), check=True, stdout=subprocess.DEVNULL)
    variables = environment()
    (start,), (ready,), (stop,) = values(unit, "ExecStart"), values(unit, "ExecStartPost"), values(unit, "KillSignal")
    words = command(start, variables)
    assert words[0] == str(PREFIX / "bin/imbrex"), f"it starts {words[0]}"
    # systemd makes the folder of the socket.
    assert values(unit, "RuntimeDirectory") == ["imbrex/%i"]
    (FOLDER / "run/disk").mkdir(parents=True)
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        post = command(ready, {})
        subprocess.run(post, check=True, timeout=60, env=dict(os.environ, MAINPID=str(server.pid)))
        uri = f"nbd+unix:///?socket={FOLDER}/run/disk/nbd.sock"
        size = subprocess.run(["nbdinfo", "--size", uri], check=True, capture_output=True, text=True).stdout
        assert int(size) == 64 << 30, size
        server.send_signal(signal.Signals[stop])
        assert server.wait(timeout=STOP_TIMEOUT_S) == 0
    finally:
        server.kill()
    assert (FOLDER / "disk/report.json").stat().st_size > 0
    # A server that could not start is noticed.
    late = subprocess.run(post, timeout=60, env=dict(os.environ, MAINPID=str(server.pid)), capture_output=True)
    assert late.returncode != 0, "it waits for a server that has ended"


def main():
    need("make", "install", "strip", "nbdinfo")
    _recipes.prepare()
    units, example = install()
    serve((units / SERVER).read_text(encoding="utf-8"))
    verify(units, example)


main()
