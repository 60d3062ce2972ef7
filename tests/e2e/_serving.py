"""Starts `imbrex serve` for the tests that drive it as a user would, and reads the report it prints."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

IMBREX = os.environ["IMBREX"]
SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 300


def need(*tools):
    """Ends the test as skipped when a program it drives is missing."""
    for tool in tools:
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            sys.exit(77)


def need_mount():
    """Ends the test as skipped where a file system cannot be mounted."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        print("skipped: mounting needs root, /dev/fuse and loop devices")
        sys.exit(77)


def create(stack, size, *settings, folder=SCRATCH):
    """`imbrex create`, of the size of the disks where none is given; answers the data directory."""
    data = folder / f"data-{len(list(folder.glob('data-*')))}"
    options = [word for setting in settings for word in ("--set", setting)]
    options += ["--size", size] if size else []
    subprocess.run([IMBREX, "create", stack, "--data", data, *options], check=True)
    return data


class Serving:
    """A server as a context manager; `report` is set once it has ended cleanly."""

    def __init__(self, stack, data, *options):
        self.socket = SCRATCH / "nbd.sock"
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.command = [IMBREX, "serve", stack, "--data", data, "--socket", self.socket, *options]
        self.report = None

    def __enter__(self):
        return self.start()

    def start(self, **options):
        """Starts the server and waits until clients can connect."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, **options)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            assert self.process.poll() is None, "the server ended before it was ready"
            assert time.monotonic() < deadline, "the server is not ready"
            time.sleep(0.02)
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            output, _ = self.process.communicate(timeout=STOP_TIMEOUT_S)
        finally:
            self.process.kill()
        if kind is None:
            assert self.process.returncode == 0, f"the server ended with {self.process.returncode}"
            self.report = json.loads(output)

    def run_report(self):
        """What the one run of a served stack has counted."""
        return self.report["runs"][0]

    def _accepts(self):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.socket))
            except OSError:
                return False
            return True


class Emulating(Serving):
    """A server of an emulated drive whose contents are in memory."""

    def __init__(self, stack, *options):
        super().__init__(stack, None)
        self.command = [IMBREX, "serve", stack, "--emulate", "--socket", self.socket, *options]
