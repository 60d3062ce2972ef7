#!/usr/bin/env python3
"""`make install` puts a stripped program, manual pages, completions and systemd units under a prefix. The program runs from
there, bash completes with what was installed, the manual pages can be read, and the unit starts the program of the prefix."""

import pathlib
import subprocess

from _serving import IMBREX, SCRATCH, need

need("make", "bash", "install", "strip")
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
into = SCRATCH / "root"
# The program is built already: `make` is told so, whatever the state of its sources.
subprocess.run(["make", "--no-print-directory", "install", "-o", "build", f"IMBREX={IMBREX}", f"DESTDIR={into}", "PREFIX=/usr"],
               cwd=ROOT, check=True)
program = into / "usr/bin/imbrex"
said = subprocess.run([program, "systems", "--json"], capture_output=True, text=True, check=True, cwd=SCRATCH)
assert '"pore"' in said.stdout
assert program.stat().st_size < pathlib.Path(IMBREX).stat().st_size, "it is not stripped"

completion = into / "usr/share/bash-completion/completions/imbrex"
script = f'source "{completion}"; COMP_WORDS=(imbrex comp); COMP_CWORD=1; _imbrex imbrex comp imbrex; echo "${{COMPREPLY[@]}}"'
completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=SCRATCH).stdout.split()
assert "compare" in completed, completed
for file in ("zsh/site-functions/_imbrex", "fish/vendor_completions.d/imbrex.fish"):
    assert "compare" in (into / "usr/share" / file).read_text()
unit = (into / "usr/lib/systemd/system/imbrex-serve@.service").read_text()
assert "\nExecStart=/usr/bin/imbrex serve " in unit, unit
page = (into / "usr/share/man/man1/imbrex-compare.1").read_text()
assert ".SH SYNOPSIS" in page and "imbrex compare \\-\\-trace" in page, page[:400]
