"""Running programs, and the one kind of error a person at the keyboard should see."""

import os
import shutil
import subprocess


class RecordingError(Exception):
    """Something the user can mend: no root, a missing package, a program that failed."""


def need_root():
    if os.geteuid() != 0:
        raise RecordingError(
            "recording mounts a file system and limits memory, which only root may do: "
            "repeat the command with sudo, or use the recordings that ship in workloads/")


def need(program, package):
    """The path of a program; a missing one is reported with the Debian package that has it."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise RecordingError(f"{program} is not installed: apt-get install {package}")
    return path


def run(command, **options):
    """Runs a program to its end; its output is shown only when it fails."""
    command = [str(word) for word in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise RecordingError(
            f"{' '.join(command)}\nended with status {done.returncode}:\n{output[-4000:]}")
    return output
