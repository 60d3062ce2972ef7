#!/usr/bin/env python3
"""The site of the documentation (`make site`): its source is assembled and looked at. The list of chapters names every page once,
every link of every page and every anchor leads somewhere by mdBook's rules, and the pages of reference have every command, stack,
drive and public name of Python. Where mdBook is installed it builds the site, and its warnings are errors."""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMBREX, SITE = os.environ["IMBREX"], pathlib.Path(os.environ["IMBREX_TMP"]) / "site"
SOURCE, REFERENCE = SITE / "src", SITE / "src" / "reference"
PAGES_MIN, LINKS_MIN, ANCHORS_MIN, COMMANDS_MIN = 150, 700, 100, 35

LINK = re.compile(r"\]\(([^)\s]+)\)")
IS_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")
# What a page of the site would load from elsewhere.
LOADED = re.compile(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//|<link[^>]+href="(?:https?:)?//|@import\s+[^;]*//|url\(["\']?(?:https?:)?//')

complaints = []


def complain(what):
    complaints.append(what)


def prose(page):
    """The lines of a page outside of blocks of code."""
    fence = None
    for line in page.read_text(encoding="utf-8").splitlines():
        mark = re.match(r" *(`{3,}|~{3,})", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is None:
            yield line
        elif mark and mark[1].startswith(fence):
            fence = None


def anchors(page):
    """The ids that mdBook gives the headings of a page: letters, digits, `_` and `-` stay, a space is a `-`, all else goes; what
    is there already gets a number."""
    found, times = set(), {}
    for line in prose(page):
        if heading := re.match(r"#{1,6} +(.*?)(?: +#+)?$", line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "").replace("*", "").strip().lower()
            name = "".join("-" if char.isspace() else char for char in words if char.isspace() or char.isalnum() or char in "_-")
            number = times.get(name, 0)
            times[name] = number + 1
            found.add(f"{name}-{number}" if number else name)
    return found


def check_chapters():
    pages = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.md")} - {"SUMMARY.md"}
    named = LINK.findall((SOURCE / "SUMMARY.md").read_text(encoding="utf-8"))
    for page in sorted(pages - set(named)):
        complain(f"SUMMARY.md does not name {page}")
    for page in sorted(name for name in set(named) if named.count(name) > 1 or name not in pages):
        complain(f"SUMMARY.md names {page} {named.count(page)} times; there {'is' if page in pages else 'is no'} such page")
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        place = str(path.relative_to(ROOT).with_name("index.md" if path.name == "README.md" else path.name))
        if place not in pages:
            complain(f"the book lacks {path.relative_to(ROOT)}")
    assert len(pages) >= PAGES_MIN, f"only {len(pages)} pages"
    return len(pages)


def check_links():
    known, links, with_anchor = {}, 0, 0
    for page in sorted(SOURCE.rglob("*.md")):
        for line in prose(page):
            for target in LINK.findall(re.sub(r"(`+)(?:(?!\1).)+?\1(?!`)", "", line)):
                if IS_ELSEWHERE.match(target):
                    continue
                links += 1
                path, _, anchor = target.partition("#")
                there = pathlib.Path(os.path.normpath(page.parent / path)) if path else page
                where = f"{page.relative_to(SOURCE)}: the link to {target}"
                if not there.is_file() or not there.is_relative_to(SOURCE):
                    complain(f"{where} leads nowhere")
                elif anchor:
                    with_anchor += 1
                    known[there] = known.get(there) or anchors(there)
                    if anchor not in known[there]:
                        complain(f"{where} has an anchor that no heading has")
    assert links >= LINKS_MIN and with_anchor >= ANCHORS_MIN, f"only {links} links, {with_anchor} with anchors"
    return links, with_anchor


def prints(*words):
    return subprocess.run([IMBREX, *words], check=True, capture_output=True, text=True).stdout


def check_command(command):
    """A command, all below it, and how many these are."""
    text = prints(*command, "--help")
    told = [word for word in command if word != "SOCKET"]
    page = REFERENCE / "commands" / f"{told[0]}.md" if told else REFERENCE / "commands.md"
    if text.strip() not in page.read_text(encoding="utf-8"):
        complain(f"{page.relative_to(SOURCE)} lacks what imbrex {' '.join(command)} --help prints")
    listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    below = [line.split()[0] for line in listed.splitlines() if re.match(r"  \S", line)]
    # The socket comes before the command that goes there.
    before = [*command, "SOCKET"] if command == ["control"] else command
    return 1 + sum(check_command([*before, name]) for name in below if name != "help")


def check_reference():
    count = check_command([])
    assert count >= COMMANDS_MIN, f"only {count} commands"
    listed = json.loads(prints("systems", "--json"))
    for kind, folder, show in (("systems", "stacks", ("systems", "--show")), ("drives", "drives", ("drive", "show"))):
        assert len(listed[kind]) > 10, kind
        for it in listed[kind]:
            page = REFERENCE / folder / f"{it['name']}.md"
            if not page.exists() or prints(*show, it["name"]).strip() not in page.read_text(encoding="utf-8"):
                complain(f"the reference lacks {it['name']} of {kind}")
    headings = {line.removeprefix("### ") for line in prose(REFERENCE / "python.md") if line.startswith("### ")}
    for file in ("__init__.py", "engines/__init__.py"):
        text = (ROOT / "python" / "imbrex" / file).read_text(encoding="utf-8")
        for name in ast.literal_eval(re.search(r"^__all__ = (\[.*?\])", text, re.MULTILINE | re.DOTALL)[1]):
            if name not in headings:
                complain(f"reference/python.md lacks {name} of {file}")
    for file in ("plots.py", "sweep.py"):
        for name in re.findall(r"^def ([a-z]\w*)\(", (ROOT / "python" / "imbrex" / file).read_text(encoding="utf-8"), re.MULTILINE):
            if name not in headings:
                complain(f"reference/python.md lacks {name} of {file}")
    return count


def build():
    """Builds the site where mdBook is installed."""
    if shutil.which("mdbook") is None:
        print("not built: mdbook is not installed")
        return
    done = subprocess.run(["mdbook", "build", SITE], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0 or re.search(r"\b(WARN|ERROR)\b", said):
        complain(f"mdbook build ended with {done.returncode}:\n{said}")
    pages = list((SITE / "html").rglob("*.html"))
    assert len(pages) >= PAGES_MIN, f"only {len(pages)} pages are built"
    for page in pages:
        if LOADED.search(page.read_text(encoding="utf-8")):
            complain(f"{page.relative_to(SITE)} loads something from elsewhere")
    print(f"built: {len(pages)} pages")


if subprocess.run([ROOT / "scripts" / "site.py", "--source", SITE, IMBREX]).returncode != 0:
    sys.exit("scripts/site.py has assembled nothing")
pages = check_chapters()
links, with_anchor = check_links()
commands = check_reference()
build()
print(f"{pages} pages, {links} links, {with_anchor} of them with anchors, {commands} commands")
sys.exit("\n".join(complaints) if complaints else 0)
