#!/usr/bin/env python3
"""The pages of docs/how-to: their commands, typed as they stand there from top to bottom, and what they print.

A block of text right behind a block of commands is what these print: its lines come in this order, "..." stands for lines that
are left out, and between two others nothing is. Files that a page shows are written before it is played. Lines of Python are
run by pandas_lines.py."""

import re

import _recipes
from _recipes import DOCS, starts_server
from _serving import SCRATCH, need

PAGES = sorted(path for path in (DOCS / "how-to").glob("*.md") if path.name != "README.md")
# Files that the reader writes, by the page and the language of their blocks.
FILES = {
    ("a-disk-at-home.md", "toml"): "home.toml",
    ("software-for-zones.md", "ini"): "past.fio",
}
PAGES_MIN, COMMANDS_MIN, SHOWN_MIN = 3, 7, 5
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."


def printed():
    """What the shell has printed so far, as lines."""
    text = (SCRATCH / "shell.out").read_text(encoding="utf-8", errors="replace")
    return [line.rstrip() for line in text.splitlines()]


def check_shown(page, shown, lines):
    """Looks for the runs of lines that a page shows in what was printed."""
    runs, at = [[]], 0
    for line in shown:
        if line == LEFT_OUT:
            runs.append([])
        else:
            runs[-1].append(line.rstrip())
    for run in filter(None, runs):
        found = next((start for start in range(at, len(lines)) if lines[start : start + len(run)] == run), None)
        assert found is not None, f"{page.name} shows\n" + "\n".join(run) + "\nand the program prints\n" + "\n".join(lines[at:])
        at = found + len(run)


def play(page):
    """Plays a page; answers how many commands were typed and how many outputs compared."""
    folder = SCRATCH / page.stem
    folder.mkdir()
    _recipes.enter(folder)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for language, text in blocks:
        if (page.name, language) in FILES:
            (folder / FILES[page.name, language]).write_text(text, encoding="utf-8")
    typed = compared = 0
    with _recipes.terminals() as (terminal, shell):
        before, language_before = 0, None
        for language, text in blocks:
            lines = text.splitlines()
            if language == "sh":
                before = len(printed())
                for line in lines:
                    (terminal if starts_server(line) else shell).type(line)
                typed += len(lines)
            elif language == "text" and language_before == "sh":
                check_shown(page, lines, printed()[before:])
                compared += 1
            language_before = language
    return typed, compared


def main():
    need("fio", "nbdcopy")
    _recipes.prepare()
    assert len(PAGES) >= PAGES_MIN, PAGES
    for page in PAGES:
        typed, compared = play(page)
        assert typed >= COMMANDS_MIN and compared >= SHOWN_MIN, f"{page.name}: {typed} commands, {compared} outputs"
        print(f"{page.name}: {typed} commands typed, {compared} outputs compared")


main()
