"""The NBD servers a workload can run on: Imbrex, which records, or nbdkit, to rehearse without it."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time

from .command import RecordingError, need, run

START_TIMEOUT_S = 30
# A served image is saved when the server ends, which may mean writing all that is dirty.
STOP_TIMEOUT_S = 600
BLOCK_BYTES = 4096
# The mean band of the drive whose model ships with Imbrex, for a figure of how far writes are spread.
BAND_BYTES = 26 << 20


class Server:
    """One NBD server process on a unix socket, started once to prepare and once to record."""

    def __init__(self, scratch):
        self.socket = scratch / "nbd.sock"
        self.output = scratch / "server.out"
        self.messages = scratch / "server.err"
        self.process = None

    def start(self, command):
        # A left-over socket of an earlier start would look like a server that is ready.
        self.socket.unlink(missing_ok=True)
        with open(self.output, "wb") as output, open(self.messages, "wb") as messages:
            self.process = subprocess.Popen([str(word) for word in command], stdout=output,
                                            stderr=messages, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._accepts():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RecordingError(f"the server did not start: {self._said()}")
            time.sleep(0.05)

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RecordingError(f"the server did not end within {STOP_TIMEOUT_S} s") from None
        if status not in (0, -signal.SIGTERM):
            raise RecordingError(f"the server ended with status {status}: {self._said()}")

    def _accepts(self):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(self.socket))
            except OSError:
                return False
            return True

    def _said(self):
        return self.messages.read_text(errors="replace").strip()[-2000:]


class Imbrex(Server):
    """`imbrex serve`, with `--record` for the part that counts."""

    def __init__(self, scratch, binary, stack, size_bytes):
        super().__init__(scratch)
        if not os.access(binary, os.X_OK):
            raise RecordingError(f"{binary} is not there: build it with `make build`")
        self.binary, self.stack, self.data = binary, stack, scratch / "data"
        run([binary, "create", stack, "--data", self.data, "--size", size_bytes_text(size_bytes)])

    def prepare(self):
        self.start([self.binary, "serve", self.stack, "--data", self.data, "--socket", self.socket])

    def record(self, out):
        self.start([self.binary, "serve", self.stack, "--data", self.data, "--socket", self.socket,
                    "--record", out])

    def summary(self, out):
        """The report the server printed when it ended is kept beside the recording."""
        report = out.with_name(out.name + ".report.json")
        report.write_bytes(self.output.read_bytes())
        return f"{out}: {out.stat().st_size} bytes; the server's report is in {report}"


class Rehearsal(Server):
    """nbdkit on a sparse file: the same flow without Imbrex, and a count of what it was asked."""

    def __init__(self, scratch, size_bytes):
        super().__init__(scratch)
        self.nbdkit = need("nbdkit", "nbdkit")
        self.image = scratch / "image"
        with open(self.image, "wb") as image:
            image.truncate(size_bytes)

    def prepare(self):
        self.start([self.nbdkit, "-f", "-U", self.socket, "file", self.image])

    def record(self, out):
        self.start([self.nbdkit, "-f", "-U", self.socket, "--filter=log", "file", self.image,
                    f"logfile={out}"])

    def summary(self, out):
        return count_log(out)


LOGGED = re.compile(r" (Read|Write|Flush|Trim|Zero) id=\d+(?: offset=(0x[0-9a-f]+) count=(0x[0-9a-f]+))?")


def count_log(log: pathlib.Path):
    """Requests by kind and the spread of the writes, from the log of nbdkit's log filter."""
    requests = dict.fromkeys(["Read", "Write", "Flush", "Trim", "Zero"], 0)
    bytes_of = dict.fromkeys(requests, 0)
    touched = {"Read": set(), "Write": set()}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = LOGGED.search(line)
            if match is None or "...Read" in line or "return=" in line:
                continue
            kind = match[1]
            requests[kind] += 1
            if match[2] is None:
                continue
            offset, count = int(match[2], 16), int(match[3], 16)
            bytes_of[kind] += count
            if kind in touched:
                first, end = offset // BLOCK_BYTES, (offset + count - 1) // BLOCK_BYTES + 1
                touched[kind].update(range(first, end))
    bands = {block * BLOCK_BYTES // BAND_BYTES for block in touched["Write"]}
    lines = [f"{kind.lower():>6}: {requests[kind]:>9} requests {bytes_of[kind] / 2**30:8.2f} GiB"
             for kind in requests]
    for kind, blocks in touched.items():
        lines.append(f"blocks touched by {kind.lower()}s: {len(blocks) * BLOCK_BYTES / 2**30:.2f} GiB")
    lines.append(f"bands of 26 MiB touched by writes: {len(bands)}")
    return "\n".join(lines)


def size_bytes_text(size_bytes):
    return f"{size_bytes // 2**20}MiB"
