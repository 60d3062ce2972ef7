"""Servers that are killed in the middle of their work, and started again."""

import os
import signal
import subprocess
import time

from _serving import SCRATCH, START_TIMEOUT_S, Serving

# What a program that has lost its device may say before it is cut off.
OUTPUT_BYTES_MAX = 1 << 20


class Killable(Serving):
    """A server that may be killed; what it says on standard error is kept."""

    def __enter__(self):
        said = open(SCRATCH / "said", "wb")
        self.said_file = said
        return self.start(stderr=said)

    def start(self, **options):
        super().start(**options)
        # Clients can connect before the layers are up; what is said of a recovery comes first.
        deadline = time.monotonic() + START_TIMEOUT_S
        while "imbrex: serving" not in self.said():
            assert self.process.poll() is None, f"the server ended: {self.said()}"
            assert time.monotonic() < deadline, "the layers are not up"
            time.sleep(0.01)
        return self

    def kill(self):
        """Ends it as `kill -9` does."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def said(self):
        """What it has said."""
        return (SCRATCH / "said").read_text(encoding="utf-8", errors="replace")

    def __exit__(self, kind, *rest):
        try:
            if self.process.returncode is None:
                super().__exit__(kind, *rest)
        finally:
            self.said_file.close()


def bounded(command, timeout_s, output="output"):
    """Runs a program that may spin on a dead device: its time and its output are bounded. Answers its exit
    status and the end of what it said."""
    path = SCRATCH / output
    limited = ["timeout", "-s", "KILL", str(timeout_s), "sh", "-c",
               f"(\"$@\"; echo $? > {path}.status) 2>&1 | head -c {OUTPUT_BYTES_MAX} > {path}", "sh",
               *map(str, command)]
    (SCRATCH / f"{output}.status").write_text("none")
    subprocess.run(limited, cwd=SCRATCH, check=False)
    status = (SCRATCH / f"{output}.status").read_text().strip()
    return status, path.read_text(encoding="utf-8", errors="replace")[-4000:]
