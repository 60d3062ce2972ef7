#!/usr/bin/env python3
"""What the server asks of the operating system, from a system-call trace: a created image is durable with the
directories that name it, a flush synchronises every member that was written, a short write is continued, a failed
synchronisation is never forgotten, direct I/O falls back where a file system has none, and large requests are few calls
on a used device."""

import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from _kill import Killable
from _serving import IMBREX, SCRATCH, create, need

need("strace")
if subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], check=False).returncode != 0:
    print("skipped: strace may not trace here")
    raise SystemExit(77)

BLOCK = 4096
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
EIO = 5
# What a start writes to a disk before anything else.
LABEL_COPIES = 2
# Blocks of a large request, and calls that read or write for one at most, on the mean of many. Of a write one is the
# journal's, and another one while parts of a checkpoint are written.
LARGE, LARGE_COUNT, READ_CALLS_MAX, WRITE_CALLS_MAX = 32, 256, 3, 4
# The same on a disk. While a flush takes long, slots wait for it, and more blocks find none where their group is.
READ_CALLS_MAX_ON_DISK = 6
MEMORY = pathlib.Path("/dev/shm")
# Requests that are sent before the first is answered.
DEPTH = 32
CALLS = "openat,mkdir,rename,renameat2,fsync,fdatasync,pwrite64,fallocate"


class Client:
    """As much of an NBD client as the test needs, with errors as numbers."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.take(18)
        self.socket.sendall(struct.pack(">I", 3))
        # Go, with the default export and no requests for information.
        self.socket.sendall(struct.pack(">QIIIH", 0x49484156454F5054, 7, 6, 0, 0))
        while True:
            _, _, kind, length = struct.unpack(">QIII", self.take(20))
            self.take(length)
            if kind == 1:
                break

    def take(self, count):
        taken = b""
        while len(taken) < count:
            part = self.socket.recv(count - len(taken))
            assert part, "the server hung up"
            taken += part
        return taken

    def call(self, command, offset=0, length=0, content=b""):
        """Answers the error and what was read."""
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, command, 1, offset, length) + content)
        _, error, _ = struct.unpack(">IIQ", self.take(16))
        return error, self.take(length) if command == READ and error == 0 else b""

    def write(self, block, content):
        return self.call(WRITE, block * BLOCK, len(content), content)[0]

    def read(self, block):
        return self.call(READ, block * BLOCK, BLOCK)

    def write_many(self, writes):
        """Makes writes of (block, content), several at once."""
        writes = iter(writes)
        while some := list(itertools.islice(writes, DEPTH)):
            self.socket.sendall(b"".join(
                struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, block * BLOCK, len(content)) + content
                for block, content in some))
            answers = struct.iter_unpack(">IIQ", self.take(16 * len(some)))
            assert all(error == 0 for _, error, _ in answers), "a write failed"

    def flush(self):
        return self.call(FLUSH)[0]

    def close(self):
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, DISCONNECT, 2, 0, 0))
        self.socket.close()


class Traced(Killable):
    """A server under strace. `process` is strace itself, which passes no signal on."""

    def __init__(self, stack, data, *injections):
        super().__init__(stack, data)
        self.trace = SCRATCH / "trace"
        injected = [word for injection in injections for word in ("-e", f"inject={injection}")]
        # -I 2: strace dies of a signal only when what it traces has.
        self.command = ["strace", "-f", "-y", "-I", "2", "-o", self.trace, "-e", f"trace={CALLS}", *injected,
                        *self.command]

    def start(self, **options):
        super().start(**options)
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children, encoding="ascii") as file:
            self.server_pid = int(file.read().split()[0])
        return self

    def __exit__(self, kind, *rest):
        if self.process.poll() is None:
            os.kill(self.server_pid, signal.SIGKILL)
        self.process.communicate()
        super().__exit__(kind, *rest)

    def calls(self):
        """Calls so far as (name, path of the descriptor, whole line), in order."""
        text = self.trace.read_text(encoding="utf-8", errors="replace")
        found = re.finditer(r"^\d+ +(\w+)\((?:\d+<([^>]*)>)?.*$", text, re.MULTILINE)
        return [(match[1], match[2] or "", match[0]) for match in found]


def stop(server):
    subprocess.run(["kill", "-TERM", str(server.server_pid)], check=True)
    server.process.wait(timeout=60)
    return server.process.returncode


def create_is_durable():
    trace, data = SCRATCH / "create.trace", SCRATCH / "new" / "image"
    subprocess.run(["strace", "-f", "-y", "-o", trace, "-e", f"trace={CALLS}", IMBREX, "create", "pore",
                    "--data", data, "--size", "64MiB"], check=True)
    lines = trace.read_text(encoding="utf-8").splitlines()

    def last(pattern):
        found = [index for index, line in enumerate(lines) if re.search(pattern, line)]
        assert found, f"no call like {pattern} in\n" + "\n".join(lines)
        return found[-1]

    last(rf"fsync\(\d+<{SCRATCH}>\)")
    last(rf"fsync\(\d+<{SCRATCH}/new>\)")
    named = last(r"rename(at2)?\(.*image\.new")
    synchronised = [index for index, line in enumerate(lines) if re.search(rf"fsync\(\d+<{data}>\)", line)]
    for node in ("smr", "ssd"):
        member = rf"{data}/{node}\.img\.new"
        made = last(rf"openat\(.*{member}.*O_CREAT")
        assert last(rf"fsync\(\d+<{member}>\)") > made
        formatted, kept = last(rf"pwrite64\(\d+<{member}>"), last(rf"fdatasync\(\d+<{member}>\)")
        moved = last(rf'rename(at2)?\([^"]*"{member}"')
        assert made < formatted < kept < moved < named, f"{node}: {made}, {formatted}, {kept}, {moved}, {named}"
        assert last(rf"fsync\(\d+<{member}>\)") < moved, "a disk is durable before it has its name"
        assert any(moved < at < named for at in synchronised), "and its name before the image is one"
    assert last(r"fsync\(\d+<.*image\.new>\)") < named, "the description is durable before it has its name"
    assert last(rf"fsync\(\d+<{data}>\)") > named, "and its name after it"


def flush_reaches_every_member():
    data = create("pore", "64MiB", "cache.capacity=1MiB", "translation.persistent_cache=8MiB")
    with Traced("pore", data) as server:
        client = Client(server.socket)
        flushes = 0
        for number in range(6):
            before = len(server.calls())
            # More than the cache holds, so that both members are written.
            for block in range(400):
                assert client.write(block * 7 % 4000, bytes([number + 1]) * BLOCK) == 0
            asked = len(server.calls()) - before
            assert client.flush() == 0
            calls = server.calls()[before:]
            for node in ("smr", "ssd"):
                own = [(index, name) for index, (name, path, _) in enumerate(calls)
                       if path.endswith(f"{node}.img")]
                written = [index for index, name in own if name in ("pwrite64", "fallocate")]
                # What went to the member before the flush was asked for is synchronised when it is answered.
                due = max((index for index in written if index < asked), default=-1)
                synced = [index for index, name in own if name == "fdatasync" and index > due]
                assert due >= 0, f"{node} was not written in round {number}"
                assert synced, f"{node} was not synchronised in round {number}"
                flushes += 1
        # With nothing under way the last call on each member is its synchronisation.
        assert client.flush() == 0
        client.close()
        assert stop(server) == 0, server.said()
    for node in ("smr", "ssd"):
        own = [name for name, path, _ in server.calls() if path.endswith(f"{node}.img")]
        assert own[-1] == "fdatasync", f"{node} ends with {own[-3:]}"
    assert flushes == 12


def a_short_write_is_continued():
    data = create("cmr-only", "64MiB")
    # The kernel takes the first block of a write of two, which here is one of zeroes as before. The two copies
    # of the label are written first.
    with Traced("cmr-only", data, f"pwrite64:retval={BLOCK}:when={LABEL_COPIES + 1}") as server:
        client = Client(server.socket)
        assert client.write(10, bytes(BLOCK) + b"\7" * BLOCK) == 0
        assert client.read(11) == (0, b"\7" * BLOCK)
        client.close()
        assert stop(server) == 0, server.said()
    written = [line for name, _, line in server.calls() if name == "pwrite64"]
    assert f"{2 * BLOCK}, {10 * BLOCK}) = {BLOCK} (INJECTED)" in written[LABEL_COPIES], written
    assert f"{BLOCK}, {11 * BLOCK}) = {BLOCK}" in written[LABEL_COPIES + 1], written


def errors_are_told_apart():
    data = create("cmr-only", "64MiB")
    for name, expected in (("ENOSPC", 28), ("EDQUOT", 28), ("EIO", EIO)):
        with Traced("cmr-only", data, f"pwrite64:error={name}:when={LABEL_COPIES + 1}") as server:
            client = Client(server.socket)
            assert client.write(1, b"\1" * BLOCK) == expected, name
            assert client.write(1, b"\2" * BLOCK) == 0, "the next one is as good as any"
            client.close()
            assert stop(server) == 0, server.said()


def a_failed_flush_is_remembered(stack, node, *settings):
    data = create(stack, "64MiB", *settings)
    with Killable(stack, data) as server:
        client = Client(server.socket)
        assert client.write(3, b"\3" * BLOCK) == 0
        failing = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-p", str(server.process.pid), "-e",
                                    "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"],
                                   stderr=subprocess.PIPE, text=True)
        assert "attached" in failing.stderr.readline()
        assert client.flush() == EIO
        # From here on the system would synchronise again.
        failing.send_signal(signal.SIGINT)
        failing.wait(timeout=30)
        for _ in range(3):
            assert client.flush() == EIO, "a later flush must not pretend"
        assert client.write(4, b"\4" * BLOCK) == EIO
        assert client.read(3) == (0, b"\3" * BLOCK), "reads go on"
        client.close()
        server.process.terminate()
        assert server.process.wait(timeout=60) == 1
    said = server.said()
    assert re.search(rf"imbrex: .*{node}\.img: fdatasync failed: Input/output error", said), said
    assert "the flush at the end failed (medium error)" in said, said


def a_second_signal_ends_at_once():
    data = create("cmr-only", "64MiB")
    with Traced("cmr-only", data, "fdatasync:delay_enter=4000000") as server:
        client = Client(server.socket)
        assert client.write(3, b"\3" * BLOCK) == 0
        subprocess.run(["kill", "-TERM", str(server.server_pid)], check=True)
        try:
            server.process.wait(timeout=1)
            raise AssertionError("it did not wait for the flush")
        except subprocess.TimeoutExpired:
            pass
        subprocess.run(["kill", "-TERM", str(server.server_pid)], check=True)
        # The tracer holds the thread that synchronises until its time is over; the status tells.
        assert server.process.wait(timeout=60) == 130
    with Killable("cmr-only", data) as server:
        assert "was not closed in order: recovered in" in server.said()
        client = Client(server.socket)
        assert client.read(3) == (0, b"\3" * BLOCK)
        client.close()


def without_direct_io(data, *options):
    """A server whose file system takes O_DIRECT and refuses to read so."""
    server = Killable("cmr-only", data, *options)
    server.command = ["strace", "-f", "-o", "/dev/null", "-P", data / "cmr.img", "-e", "trace=pread64", "-e",
                      "inject=pread64:error=EINVAL:when=1", *server.command]
    return server


def direct_io_falls_back():
    data = create("cmr-only", "64MiB")
    server = without_direct_io(data, "--direct", "auto")
    with server:
        assert "durable, buffered I/O" in server.said(), server.said()
        client = Client(server.socket)
        assert client.write(5, b"\5" * BLOCK) == 0
        assert client.flush() == 0
        assert client.read(5) == (0, b"\5" * BLOCK)
        client.close()
        children = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
        with open(children, encoding="ascii") as file:
            traced = int(file.read().split()[0])
        os.kill(traced, signal.SIGTERM)
        try:
            server.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            # strace has been seen to swallow a signal: the server's pipe for signals stayed empty.
            os.kill(traced, signal.SIGTERM)
            server.process.communicate(timeout=30)
    done = subprocess.run(without_direct_io(data, "--direct", "on").command, capture_output=True, text=True)
    expected = f"imbrex: node `cmr`: {data}/cmr.img cannot be opened with O_DIRECT: its file system has no direct I/O"
    assert done.returncode == 1 and done.stderr.strip() == expected, done.stderr


def data_calls(server, requests, *injections):
    """Calls that read or write the cache's disk while `requests` is called, the synchronising ones left out."""
    trace = SCRATCH / "data.trace"
    calls = "pread64,preadv,preadv2,pwrite64,pwritev,pwritev2"
    injected = [word for injection in injections for word in ("-e", f"inject={injection}")]
    with subprocess.Popen(["strace", "-f", "-y", "-o", trace, "-e", f"trace={calls}", *injected, "-p",
                           str(server.process.pid)], stderr=subprocess.PIPE, text=True) as tracing:
        try:
            assert "attached" in tracing.stderr.readline()
            requests()
        finally:
            tracing.send_signal(signal.SIGINT)
    found = re.findall(r"^\d+ +p(read|write)\w+\(\d+<[^>]*ssd\.img>", trace.read_text(encoding="utf-8", errors="replace"),
                       re.MULTILINE)
    return found.count("read"), found.count("write")


def large_requests_are_few_calls():
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < 2 << 30:
        return used_device(SCRATCH, READ_CALLS_MAX_ON_DISK)
    with tempfile.TemporaryDirectory(prefix="imbrex-calls-", dir=MEMORY) as folder:
        used_device(pathlib.Path(folder), READ_CALLS_MAX)


def used_device(folder, read_calls_max):
    """All of the device is cached, and every block was written again in random order."""
    blocks = (256 << 20) // BLOCK
    data = create("lru", "256MiB", "cache.capacity=320MiB", folder=folder)
    rng, newest = random.Random(0), [0] * blocks

    def content(block):
        return struct.pack("<II", block, newest[block]) * (BLOCK // 8)

    def again(first, count=1):
        for block in range(first, first + count):
            newest[block] += 1
        return first, b"".join(map(content, range(first, first + count)))

    def read(client, first):
        error, found = client.call(READ, first * BLOCK, LARGE * BLOCK)
        assert error == 0 and found == b"".join(map(content, range(first, first + LARGE))), first

    def anywhere():
        return [rng.randrange(blocks // LARGE) * LARGE for _ in range(LARGE_COUNT)]

    with Killable("lru", data) as server:
        client = Client(server.socket)
        client.write_many(again(first, 256) for first in range(0, blocks, 256))
        for _ in range(4):
            client.write_many(again(block) for block in rng.sample(range(blocks), blocks))
        reads, _ = data_calls(server, lambda: [read(client, first) for first in anywhere()])
        # What a call for several reads does not bring is read alone.
        data_calls(server, lambda: [read(client, first) for first in anywhere()[:32]], "preadv,preadv2:error=EAGAIN:when=1+2")
        _, writes = data_calls(server, lambda: [client.write(*again(first, LARGE)) for first in anywhere()])
        for first in range(0, blocks, LARGE):
            read(client, first)
        client.close()
    for calls, most in ((reads, read_calls_max), (writes, WRITE_CALLS_MAX)):
        print(f"{calls / LARGE_COUNT:.2f} calls for a large request, at most {most}")
        assert 0 < calls <= most * LARGE_COUNT, f"{calls} calls for {LARGE_COUNT} requests, {reads} for reads"


create_is_durable()
direct_io_falls_back()
a_short_write_is_continued()
errors_are_told_apart()
a_failed_flush_is_remembered("cmr-only", "cmr")
a_second_signal_ends_at_once()
flush_reaches_every_member()
a_failed_flush_is_remembered("lru", "ssd", "cache.capacity=4MiB")
large_requests_are_few_calls()
