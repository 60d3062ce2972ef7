"""Runs commands under the guest kernel of the reference material beside the repository, which has the
device-mapper targets and file systems that a test machine may lack."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNNER = ROOT.parent / "shared" / "guest" / "uml-run.sh"


def need_guest():
    """Ends the test as skipped where there is no guest kernel, or where it does not start: that of Linux 6.12
    dies on processors with AMX."""
    if not RUNNER.exists():
        print("skipped: ../shared/guest is absent")
        sys.exit(77)
    tried = subprocess.run([RUNNER, "-t", "60", "--", "true"], cwd="/", capture_output=True, text=True)
    said = next((line for line in tried.stderr.splitlines() if "Attempted to kill init" in line), None)
    if said:
        print(f"skipped: the guest kernel does not start on this machine: {said}")
        sys.exit(77)


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
                          env={"UML_SHARE": str(share), "HOME": str(pathlib.Path.home()),
                               "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        print(text[-8000:])
        raise AssertionError(f"the guest ended with {done.returncode}")
    return text
