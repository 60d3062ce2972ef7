#!/usr/bin/env python3
"""Makes a site of the documentation, with mdBook.

    scripts/site.py FOLDER [IMBREX]                builds the site in FOLDER/html from a source in FOLDER/src
    scripts/site.py --source FOLDER [IMBREX]       assembles the source and stops

The source is the pages of the repository as they are, each at its own place so that their links hold, the files that they link to,
and pages of reference (scripts/site_reference.py). IMBREX is the program, target/release/imbrex if it is left out. FOLDER is made anew;
one that has something else in it than an earlier site is left alone."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import site_reference  # which lies beside this file

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The chapters: the title of each part and its pages, in order; a pattern stands for those that are not named before.
# Other pages of a folder whose README.md is in the part hang below that.
REFERENCE = "Reference"
PARTS = (
    ("How to", ("docs/how-to/README.md", "docs/how-to/*.md", "docs/choosing-a-cache.md", "docs/will-it-survive.md")),
    ("Working with it", ("docs/workloads.md", "docs/reports.md", "docs/stacks.md", "docs/drives.md", "docs/fio.md", "docs/fit.md",
                         "workloads/README.md", "workloads/*/README.md")),
    ("Serving", ("docs/serving.md", "docs/operating-an-array.md")),
    ("Python and sweeps", ("docs/python.md", "docs/sweeps.md", "docs/notebooks/README.md")),
    ("Published systems", ("docs/systems/README.md", "docs/systems/*.md", "docs/adding-a-policy.md", "experiments/README.md",
                           "experiments/*/README.md")),
    ("Drive models", ("docs/models/validation.md", "docs/models/*.md")),
    ("Reliability", ("docs/reliability.md", "docs/reliability-figures.md")),
    ("Formats", ("docs/formats/README.md", "docs/formats/traces.md", "docs/formats/*.md")),
    (REFERENCE, ()),
    ("The project", ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/performance.md", "docs/decisions/README.md",
                     "docs/decisions/*.md")),
)
FIRST = "README.md"
# What is looked through for pages that nobody has given a place.
SEARCHED = ("*.md", "docs/**/*.md", "experiments/**/*.md", "workloads/**/*.md")
BOOK = """[book]
title = "Imbrex"
description = "Simulate, serve and emulate shingled (SMR) disks"
language = "en"
src = "src"

[build]
build-dir = "html"
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
additional-css = ["site.css"]

[output.html.fold]
enable = true
level = 0

[output.html.playground]
runnable = false

[output.html.print]
enable = false
"""
# As wide as the tables that commands print; tables of a page have room on a telephone.
STYLE = """:root { --content-max-width: 1000px; }
table td, table th { padding: 3px 8px; }
"""
INSTALL = "mdbook is not installed: `cargo install mdbook --locked` does that"

FENCE = re.compile(r"^ *(```+|~~~+)")
CODE = re.compile(r"(`+)(?:(?!\1).)+?\1(?!`)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
IS_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#")


def place_of(path):
    """Where a page of the repository stands in the book: a README.md is the first page of its folder."""
    if path.name == FIRST:
        return path.with_name("index.md")
    return path if path.suffix else path / "index.md"


def title_of(text):
    """The first heading, without its marks; brackets would end the link in the list of chapters."""
    heading = next(line for line in text.splitlines() if line.startswith("# "))
    return re.sub(r"[`\[\]]", "", heading.removeprefix("# ")).strip()


def chapter(title, place, depth=0):
    return f"{'  ' * depth}- [{title}]({place})"


def outside_code(text, change):
    """A text of which `change` has made what is neither in a block of code nor in a span of it."""
    lines, fence = [], None
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            fence = None if mark and mark[1].startswith(fence) and line.strip() == mark[1] else fence
        else:
            pieces, at = [], 0
            for span in CODE.finditer(line):
                pieces += [change(line[at : span.start()]), span[0]]
                at = span.end()
            line = "".join([*pieces, change(line[at:])])
        lines.append(line)
    return "\n".join(lines) + "\n"


class Book:
    """The source of the book while it grows."""

    def __init__(self, folder):
        self.source = folder / "src"
        # The pages of the repository that have a chapter, and what else is linked to.
        self.pages = set()
        self.linked = set()

    def write(self, place, text):
        path = self.source / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def link(self, page, target):
        """A target of a link of a page, as it is in the book."""
        if IS_ELSEWHERE.match(target):
            return target
        path, mark, anchor = target.partition("#")
        there = pathlib.Path(os.path.normpath(page.parent / path))
        if not (ROOT / there).exists():
            sys.exit(f"{page}: the link to {target} leads nowhere")
        if (ROOT / there / FIRST).exists():
            there /= FIRST
        if there.suffix != ".md":
            self.linked.add(there)
        is_page = there.suffix == ".md" or (ROOT / there).is_dir()
        return os.path.relpath(place_of(there) if is_page else there, page.parent) + mark + anchor

    def add(self, page):
        """Adds a page of the repository; answers its title."""
        self.pages.add(page)
        text = (ROOT / page).read_text(encoding="utf-8")

        def with_links(part):
            return LINK.sub(lambda found: f"]({self.link(page, found[1])})", part)

        self.write(place_of(page), outside_code(text, with_links))
        return title_of(text)

    def add_linked(self):
        """Copies the files that pages link to as they are; answers the chapters of linked folders, each a page with its files."""
        chapters = []
        for path in sorted(self.linked):
            if not (ROOT / path).is_dir():
                self.copy(path)
                continue
            files = sorted(it.name for it in (ROOT / path).iterdir() if it.is_file() and not it.name.startswith("."))
            for file in files:
                self.copy(path / file)
            listed = "\n".join(f"- [{file}]({file})" for file in files)
            self.write(path / "index.md", f"# Files of {path}\n\nAs they are in the repository:\n\n{listed}\n")
            chapters.append(chapter(f"Files of {path}", path / "index.md"))
        return chapters

    def copy(self, path):
        (self.source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, self.source / path)


def pages_of(patterns, taken):
    """The pages of a part in their order."""
    pages = []
    for pattern in patterns:
        found = sorted(path.relative_to(ROOT) for path in ROOT.glob(pattern))
        pages += [page for page in found if page not in taken and page not in pages]
    return pages


def reference_chapters(book, imbrex):
    lines = []
    for place, text in site_reference.pages(imbrex):
        path = pathlib.Path("reference") / place
        book.write(path, text + "\n")
        lines.append(chapter(title_of(text), path, len(path.parts) - 2))
    return lines


def assemble(folder, imbrex):
    """Writes the source of the book."""
    book = Book(folder)
    summary = ["# Summary", "", f"[{book.add(pathlib.Path(FIRST))}]({place_of(pathlib.Path(FIRST))})"]
    for part, patterns in PARTS:
        summary += ["", f"# {part}", ""]
        if part == REFERENCE:
            summary += reference_chapters(book, imbrex)
        first = None
        for page in pages_of(patterns, book.pages):
            is_below = first is not None and page.is_relative_to(first)
            first = page.parent if page.name == FIRST and not is_below else first
            summary.append(chapter(book.add(page), place_of(page), int(is_below)))
    summary += book.add_linked()
    found = {path.relative_to(ROOT) for pattern in SEARCHED for path in ROOT.glob(pattern)}
    if left := sorted(map(str, found - book.pages)):
        sys.exit(f"no chapter has {', '.join(left)}: give each a place in PARTS of scripts/site.py")
    book.write("SUMMARY.md", "\n".join(summary) + "\n")
    (folder / "book.toml").write_text(BOOK, encoding="utf-8")
    (folder / "site.css").write_text(STYLE, encoding="utf-8")


def make_room(folder):
    """An empty folder, in the place of an earlier site."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "book.toml").exists():
        sys.exit(f"{folder} has something else in it than a site; accepted: an empty folder, an earlier site, or none")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="store_true", help="assemble the source and stop")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("imbrex", type=pathlib.Path, nargs="?", default=ROOT / "target" / "release" / "imbrex")
    given = parser.parse_args()
    if not given.imbrex.exists():
        sys.exit(f"{given.imbrex}: no such program; `make build` makes target/release/imbrex")
    make_room(given.folder)
    assemble(given.folder, given.imbrex.resolve())
    if given.source:
        return
    if shutil.which("mdbook") is None:
        sys.exit(f"{INSTALL}. The pages are assembled in {given.folder / 'src'}.")
    if subprocess.run(["mdbook", "build", given.folder]).returncode != 0:
        sys.exit(1)
    print(f"The site is built: open {given.folder / 'html' / 'index.html'} in a browser.")


main()
