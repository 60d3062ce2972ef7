"""The program `imbrex`: the same commands as those of the binary, in the same code."""

import signal
import sys

from . import _imbrex


def main() -> int:
    """Runs the command line that the process was started with; gives the exit status."""
    # Python would notice Ctrl-C when the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _imbrex.main(sys.argv)
