#!/usr/bin/env python3
"""The recipes of docs/serving.md, typed as they stand there, one after another in one folder, as a reader would: a server in a
terminal of its own, what follows in another one. Recipes below the headings of LEFT_OUT need what a test does not have."""

import os
import pathlib
import re
import signal
import subprocess
import time

from _serving import IMBREX, SCRATCH, START_TIMEOUT_S, STOP_TIMEOUT_S, need

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/serving.md"
LEFT_OUT = {
    "On real disks": "block devices to spare",
    "As root": "the kernel module of NBD",
    "In a virtual machine": "a virtual machine",
}
LINE_TIMEOUT_S = 300
FOLDER, TOOLS = SCRATCH / "there", SCRATCH / "bin"

os.environ["PATH"] += ":/usr/sbin:/sbin"
need("nbdinfo", "nbdcopy", "qemu-img", "qemu-io", "fio", "nbdfuse", "fusermount3", "mkfs.ext4", "e2fsck", "python3")
if not os.access("/dev/fuse", os.W_OK):
    print("skipped: nbdfuse needs /dev/fuse")
    raise SystemExit(77)


def recipes():
    """The heading of each block of commands, and its lines."""
    heading, lines = None, None
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if lines is None and re.match("#+ ", line):
            heading = line.lstrip("# ")
        elif line == "```sh":
            lines = []
        elif line.startswith("```"):
            if lines is not None:
                yield heading, lines
            lines = None
        elif lines is not None:
            lines.append(line)


class Terminal:
    """Where a server runs until Ctrl-C."""

    def __init__(self):
        self.process = None
        self.line = None
        self.may_fail = False

    def type(self, line):
        self.end()
        self.line = line
        said = SCRATCH / "server.err"
        with open(said, "wb") as messages:
            self.process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=FOLDER, stderr=messages, start_new_session=True)
        (TOOLS / "pidof").write_text(f"#!/bin/sh\necho {self.process.pid}\n", encoding="utf-8")
        wait_until(lambda: "imbrex: serving" in said.read_text(encoding="utf-8") or self.process.poll() is not None, line)
        assert self.process.poll() is None, f"{line}\nended: {said.read_text(encoding='utf-8')}"

    def end(self):
        if self.process is None:
            return
        assert self.process.poll() is None, f"{self.line}\nended with {self.process.returncode}"
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=STOP_TIMEOUT_S)
        assert status == 0 or self.may_fail, f"{self.line}\nended with {status}"
        self.process, self.may_fail = None, False


def wait_until(condition, what):
    deadline = time.monotonic() + START_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"not so after {START_TIMEOUT_S} s: {what}"
        time.sleep(0.05)


class Shell:
    """Where all else is typed, line by line."""

    def __init__(self):
        self.output = open(SCRATCH / "shell.out", "wb")
        self.process = subprocess.Popen(["bash"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=self.output,
                                        stderr=self.output, start_new_session=True)
        self.lines = 0

    def type(self, line):
        self.lines += 1
        status = SCRATCH / f"status-{self.lines}"
        self.process.stdin.write(f"{line}\necho $? > {status}.new; mv {status}.new {status}\n".encode())
        self.process.stdin.flush()
        deadline = time.monotonic() + LINE_TIMEOUT_S
        while not status.exists():
            assert time.monotonic() < deadline, f"{line}\nis not done after {LINE_TIMEOUT_S} s"
            time.sleep(0.01)
        said = (SCRATCH / "shell.out").read_text(encoding="utf-8", errors="replace")[-2000:]
        assert status.read_text().strip() == "0", f"{line}\nended with {status.read_text()}{said}"
        # What began in the background is seen to be there before the next line is typed.
        for word in re.findall(r"nbdfuse (\S+)", line) if line.endswith("&") else []:
            wait_until((FOLDER / word).exists, line)

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=STOP_TIMEOUT_S)


def starts_server(line):
    return line.startswith("imbrex serve") and "--run" not in line and not line.endswith("&")


def play(terminal, shell, lines, servers):
    """Types a block. `servers` has the command that starts a server, by the name of its socket."""
    if not any(line.startswith("imbrex serve") for line in lines):
        wanted = [name for name in servers if any(name in line for line in lines)]
        if any("pidof" in line for line in lines):
            wanted = ["disk.sock"]
        for name in wanted:
            if terminal.process is None or terminal.line != servers[name]:
                terminal.type(servers[name])
    for number, line in enumerate(lines):
        if starts_server(line):
            terminal.type(line)
            if number + 1 < len(lines):
                terminal.end()
            continue
        if line.startswith(("imbrex serve", "imbrex create")):
            terminal.end()
        # A device of which a disk is gone may have lost what it has not written yet.
        terminal.may_fail |= line.endswith(" fail")
        shell.type(line)


def main():
    FOLDER.mkdir()
    TOOLS.mkdir()
    (TOOLS / "imbrex").symlink_to(IMBREX)
    # There may be servers of others.
    (TOOLS / "pidof").touch(mode=0o755)
    os.environ["PATH"] = f"{TOOLS}:{os.environ['PATH']}"
    (FOLDER / "data.bin").write_bytes(os.urandom(1 << 20) * 16)
    blocks = list(recipes())
    unknown = LEFT_OUT.keys() - {heading for heading, _ in blocks}
    assert not unknown, f"no recipe is below {unknown}"
    servers = {}
    for line in (line for heading, lines in blocks if heading not in LEFT_OUT for line in lines if starts_server(line)):
        servers.setdefault(re.search(r"--socket (\S+)", line)[1], line)
    terminal, shell, typed = Terminal(), Shell(), 0
    try:
        for heading, lines in blocks:
            if heading in LEFT_OUT:
                continue
            play(terminal, shell, lines, servers)
            typed += len(lines)
        terminal.end()
    finally:
        if terminal.process is not None:
            terminal.process.kill()
        shell.end()
    assert typed >= 20, f"only {typed} lines"
    print(f"{typed} lines typed")


main()
