"""ext4 on an NBD export without a kernel NBD client: nbdfuse shows the export as a file, a loop
device makes a block device of it. The loop device uses direct I/O, so that the only page cache
between the workload and the server is the one the workload's memory limit bounds."""

import os
import subprocess
import time

from .command import RecordingError, need, run

FUSE_TIMEOUT_S = 30
# Requests that the FUSE mount keeps in flight on separate NBD connections.
NBD_CONNECTIONS = 4
BLOCK_BYTES = 4096


class Device:
    """The chain server -> nbdfuse -> loop device -> ext4, taken apart in reverse order."""

    def __init__(self, scratch, server):
        self.server = server
        self.fuse_directory = scratch / "fuse"
        self.root = scratch / "fs"
        self.fuse_directory.mkdir()
        self.root.mkdir()
        self.nbdfuse = need("nbdfuse", "libnbd-bin")
        self.fusermount = need("fusermount3", "fuse3")
        self.losetup = need("losetup", "mount")
        self.mkfs = need("mkfs.ext4", "e2fsprogs")
        if not os.path.exists("/dev/fuse"):
            raise RecordingError("/dev/fuse is not there: load the fuse module (modprobe fuse)")
        self.fuse = None
        self.loop = None
        self.mounted = False

    def prepare(self):
        """Serves without recording, makes the file system and mounts it."""
        self.server.prepare()
        self.attach()
        # Tables are initialised now: done lazily they would be written in the middle of the recording.
        run([self.mkfs, "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.loop])
        self.mount()

    def record(self, out):
        """Serves with recording and mounts what `prepare` left, with a cold page cache."""
        self.server.record(out)
        self.attach()
        self.mount()

    def detach(self):
        """Unmounts, takes the chain apart and ends the server; usable after any failure as well."""
        if self.mounted:
            run(["umount", self.root])
            self.mounted = False
        if self.loop is not None:
            run([self.losetup, "-d", self.loop])
            self.loop = None
            # The kernel lets go of the file under a loop device a moment after the command returns.
            time.sleep(1)
        if self.fuse is not None:
            fuse, self.fuse = self.fuse, None
            if fuse.poll() is None:
                run([self.fusermount, "-u", self.fuse_directory])
            fuse.wait(timeout=FUSE_TIMEOUT_S)
        self.server.stop()

    def attach(self):
        """Puts the FUSE file and the loop device on a server that is running."""
        exported = self.fuse_directory / "nbd"
        self.fuse = subprocess.Popen(
            [self.nbdfuse, "-C", str(NBD_CONNECTIONS), str(exported), "--unix",
             str(self.server.socket)], start_new_session=True)
        deadline = time.monotonic() + FUSE_TIMEOUT_S
        while not exported.exists():
            if self.fuse.poll() is not None or time.monotonic() > deadline:
                raise RecordingError("nbdfuse did not show the export as a file")
            time.sleep(0.05)
        # Without a sector size the kernel would ask for parts of blocks, which the server has to read first.
        self.loop = run([self.losetup, "--find", "--show", "--direct-io=on",
                         "--sector-size", BLOCK_BYTES, exported]).strip()
        direct = run([self.losetup, "--noheadings", "--output", "DIO", self.loop]).strip()
        if direct != "1":
            raise RecordingError(
                f"{self.loop} refused direct I/O: its page cache would hide reads from the recording")

    def mount(self):
        """Mounts the file system that is on the loop device."""
        run(["mount", "-o", "noatime", self.loop, self.root])
        self.mounted = True
