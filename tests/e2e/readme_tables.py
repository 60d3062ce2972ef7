#!/usr/bin/env python3
"""The tables of README.md are what the command above each prints."""

import os
import pathlib
import re
import shlex
import subprocess

IMBREX = os.environ["IMBREX"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
# A command alone in its block, and right under it a block of text that begins as the command's output does.
SHOWN = re.compile(r"^```sh\nimbrex (?P<arguments>compare [^\n]+)\n```\n\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

shown = list(SHOWN.finditer((ROOT / "README.md").read_text(encoding="utf-8")))
assert len(shown) >= 2, "README.md shows two tables or more"
for it in shown:
    run = subprocess.run([IMBREX, *shlex.split(it["arguments"])], check=True, cwd=ROOT, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    assert run.stdout.startswith(it["text"]), f"imbrex {it['arguments']} prints\n{run.stdout}"
