"""The commands of a page of the documentation, typed as they stand there, one after another in one folder, as a reader
would: a server in a terminal of its own, what follows in another one."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

from _serving import IMBREX, SCRATCH, START_TIMEOUT_S, STOP_TIMEOUT_S

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
LINE_TIMEOUT_S = 300
BEGUN_S = 2
FOLDER, TOOLS = SCRATCH / "there", SCRATCH / "bin"


def prepare():
    """Makes the folder in which all is typed, and has `imbrex` mean the program that is tested."""
    FOLDER.mkdir()
    TOOLS.mkdir()
    (TOOLS / "imbrex").symlink_to(IMBREX)
    # There may be servers of others.
    (TOOLS / "pidof").touch(mode=0o755)
    os.environ["PATH"] = f"{TOOLS}:{os.environ['PATH']}"


def enter(folder):
    """Goes on in another folder, which has in it what the folder of the repository has, as its reader sees it."""
    global FOLDER
    FOLDER = folder
    for path in DOCS.parent.iterdir():
        if path.name not in ("target", "results") and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)


def begin(line):
    """Types a slow line and ends it after a moment. It must not have failed by then."""
    said = SCRATCH / "begun.out"
    with open(said, "wb") as output:
        process = subprocess.Popen(["bash", "-c", line], cwd=FOLDER, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
    try:
        status = process.wait(timeout=BEGUN_S)
        assert status == 0, f"{line}\nended with {status}: {said.read_text(encoding='utf-8', errors='replace')[-2000:]}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def blocks(page, language):
    """The heading of each block in that language, and its lines."""
    heading, lines, is_wanted = None, None, False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if lines is None and re.match("#+ ", line):
            heading = line.lstrip("# ")
        elif line.startswith("```"):
            if lines is None:
                lines, is_wanted = [], line == f"```{language}"
            else:
                if is_wanted:
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
            self.process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=messages,
                                            start_new_session=True)
        (TOOLS / "pidof").write_text(f"#!/bin/sh\necho {self.process.pid}\n", encoding="utf-8")
        wait_until(lambda: "imbrex: serving" in said.read_text(encoding="utf-8") or self.process.poll() is not None, line)
        assert self.process.poll() is None, f"{line}\nended: {said.read_text(encoding='utf-8')}"

    def holds(self, image):
        """Whether a server has that image."""
        return self.process is not None and image is not None and image_of(self.line) == image

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
        # An earlier shell may have left one.
        status.unlink(missing_ok=True)
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


@contextlib.contextmanager
def terminals():
    """One terminal for servers and a shell for all else. Both are ended, the server by a kill where a line has failed."""
    terminal, shell = Terminal(), Shell()
    try:
        yield terminal, shell
        terminal.end()
    finally:
        if terminal.process is not None:
            terminal.process.kill()
        shell.end()


def image_of(line):
    """The data directory that a command wants for itself; None where it wants none."""
    found = re.search(r"^imbrex (?:serve|create)\b.* --data (\S+)|^imbrex (?:check|inspect) (\S+)", line)
    return found and (found[1] or found[2])


def starts_server(line):
    return line.startswith("imbrex serve") and "--run" not in line and not line.endswith("&")


def play(page, left_out, minimum, changed=lambda line: line):
    """Types the `sh` blocks of a page, those below the headings of `left_out` aside. `minimum` lines at least. `changed`
    answers what a test types in the place of a line."""
    recipes = list(blocks(page, "sh"))
    unknown = left_out.keys() - {heading for heading, _ in recipes}
    assert not unknown, f"no recipe is below {unknown}"
    recipes = [(heading, list(map(changed, lines))) for heading, lines in recipes if heading not in left_out]
    play_blocks(recipes)
    typed = sum(len(lines) for _, lines in recipes)
    assert typed >= minimum, f"only {typed} lines"
    print(f"{typed} lines typed")


def play_blocks(recipes):
    """Types blocks, each with its heading."""
    servers = {}
    for line in (line for _, lines in recipes for line in lines if starts_server(line)):
        servers.setdefault(re.search(r"--socket (\S+)", line)[1], line)
    with terminals() as (terminal, shell):
        heading_before = None
        for heading, lines in recipes:
            # What was started below this heading goes on.
            goes_on = heading == heading_before and terminal.process is not None
            play_block(terminal, shell, lines, {} if goes_on else servers)
            heading_before = heading


def play_block(terminal, shell, lines, servers):
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
        if terminal.holds(image_of(line)):
            terminal.end()
        # A device of which a disk is gone may have lost what it has not written yet.
        terminal.may_fail |= line.endswith(" fail")
        shell.type(line)
