"""A memory control group for the workload, page cache included: without it a machine with much memory
would answer every read from its cache, and the recording would hold none."""

import os
import pathlib
import time

from .command import RecordingError

V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")
LIMIT_MAX_BYTES = 512 << 20
REMOVE_TIMEOUT_S = 30


class MemoryLimit:
    """A control group of version 1 or 2; `wrap` puts a command into it."""

    def __init__(self, limit_bytes):
        if limit_bytes > LIMIT_MAX_BYTES:
            raise RecordingError(f"--memory is at most {LIMIT_MAX_BYTES >> 20}MiB: "
                                 "a larger page cache hides the reads")
        name = f"imbrex-recording-{os.getpid()}"
        if (V1 / "memory.limit_in_bytes").exists():
            self.group, limit_file = V1 / name, "memory.limit_in_bytes"
        elif "memory" in _controllers(V2):
            (V2 / "cgroup.subtree_control").write_text("+memory")
            self.group, limit_file = V2 / name, "memory.max"
        else:
            raise RecordingError("no memory control group: mount one (version 1 or 2) under "
                                 "/sys/fs/cgroup with the memory controller")
        try:
            self.group.mkdir()
            (self.group / limit_file).write_text(str(limit_bytes))
        except OSError as error:
            raise RecordingError(f"{self.group}: {error.strerror}: "
                                 "the memory of the workload cannot be limited") from None

    def wrap(self, command, user=None):
        """The command inside the group, and as another user if one is given."""
        change_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        enter = f'echo $$ > {self.group}/cgroup.procs && exec "$@"'
        return ["sh", "-c", enter, "sh", *change_user, *map(str, command)]

    def remove(self):
        """Removes the group; the processes in it have ended, their cleaning up may take a moment."""
        deadline = time.monotonic() + REMOVE_TIMEOUT_S
        while True:
            try:
                self.group.rmdir()
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise RecordingError(f"{self.group}: {error.strerror}") from None
                time.sleep(0.2)


def _controllers(group):
    try:
        return (group / "cgroup.controllers").read_text().split()
    except OSError:
        return []
