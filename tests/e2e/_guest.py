"""Runs commands under the guest kernel of the reference material beside the repository, which has the
device-mapper targets and file systems that a test machine may lack."""

import os
import pathlib
import shutil
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNNER = ROOT.parent / "shared" / "guest" / "uml-run.sh"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def need_guest():
    """Ends the test as skipped where there is no guest kernel, or where it does not start. The first one died on
    processors with AMX, whose registers did not fit; the present one has room for them, and was tried without."""
    if not RUNNER.exists():
        print("skipped: ../shared/guest is absent")
        sys.exit(77)
    tried = subprocess.run([RUNNER, "-t", "60", "--", "true"], cwd="/", env=environment(), capture_output=True,
                           text=True)
    said = next((line for line in tried.stderr.splitlines() if "Attempted to kill init" in line), None)
    if said:
        print(f"skipped: the guest kernel does not start on this machine ({processor()}): {said}")
        sys.exit(77)


def processor():
    """The processor's name, and whether it has AMX."""
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    facts = dict(line.split(":", 1) for line in reversed(lines) if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    with_amx = "with" if "amx_tile" in facts.get("flags", "").split() else "without"
    return f"{facts.get('model name', 'an unnamed processor')}, {with_amx} AMX"


def environment():
    """The runner's environment. It unpacks the kernel once, under a name of its contents here: by the runner's own
    name an older kernel with the same version would be used for ever."""
    checksum = 0
    for archive in sorted(RUNNER.parent.glob("*.zst")):
        checksum = zlib.crc32(archive.read_bytes(), checksum)
    home = pathlib.Path.home()
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return {"HOME": str(home), "PATH": PATH, "UML_KERNEL": str(cache / f"linux-uml-{checksum:08x}")}


def prepare(share, *names):
    """Makes `share` and puts the binary and the named files of this folder there: the guest sees the
    host's folders, but not what is under /tmp."""
    share.mkdir()
    shutil.copy(os.environ["IMBREX"], share / "imbrex")
    for name in names:
        shutil.copy(pathlib.Path(__file__).with_name(name), share / name)


def run(command, share, *, disks=(), memory="2G", timeout_s=600):
    """Runs a shell command as root in the guest; `share` is /share there, the host files `disks` are
    /dev/ubda and so on. Fails the test when the command does."""
    names = " ".join(f"ubd{letter}={path}" for letter, path in zip("abcdefgh", disks))
    options = ["-m", memory, "-t", str(timeout_s)] + (["-u", names] if disks else [])
    done = subprocess.run([RUNNER, *options, "--", command], cwd="/",
                          env=dict(environment(), UML_SHARE=str(share)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        print(text[-8000:])
        raise AssertionError(f"the guest ended with {done.returncode}")
    return text
