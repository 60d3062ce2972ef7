#!/usr/bin/env python3
"""The pages of a sweep of five by five, of a sweep that was made as jobs, of a comparison of all stacks, of `drive bench` and of a figure of HWSR beside the paper's, opened in a real browser at 400, 800 and
1300 pixels: nothing is cut or lies on anything else, charts keep their labels, heat maps are painted, and screenshots in light and
dark show a page. IMBREX_SCREENSHOTS=DIR keeps the screenshots there, for who wants to look at them."""

import concurrent.futures
import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zlib

from _serving import IMBREX, SCRATCH

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (400, 800, 1300)
# What a phone or a window shows at once, and then some of what lies below.
HEIGHT = 1800
# The colour of the page, and how the browser is asked for it.
SCHEMES = {"light": ((0xF6, 0xF7, 0xF9), 1), "dark": ((0x10, 0x13, 0x17), 0)}
# A browser that dies or answers nothing, which happens on a busy machine, is asked again. What a page says of itself stands.
ATTEMPTS = 3
# A page of one colour is smaller than this.
SHOWS_SOMETHING_BYTES = 20_000

# What a page says of itself: everything that a reader would find cut, covered or empty.
PROBE = r"""
addEventListener("load", () => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  all("details").forEach((details) => { details.open = true; });
  const problems = [];
  const said = (element) => element.className + " \u201c" + element.textContent.trim().slice(0, 40) + "\u201d";
  const box = (element) => element.getBoundingClientRect();
  const isSeen = (element) => box(element).width > 0 && box(element).height > 0;
  const width = document.documentElement.clientWidth;
  const scrolls = (element) => {
    for (let at = element; at && at !== document.documentElement; at = at.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return true;
    }
    return false;
  };
  if (document.documentElement.dataset.error) problems.push("the script failed: " + document.documentElement.dataset.error);
  const isBeyond = ({ left, right }) => right > width + 1 || left < -1;
  const words = document.createRange();
  if (document.documentElement.scrollWidth > width) problems.push("the page is wider than the screen");
  for (const element of all("body *").filter((element) => isSeen(element) && !scrolls(element))) {
    if (isBeyond(box(element))) problems.push("beyond the screen: " + said(element));
    // Text can leave a box that fits.
    for (const text of [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
      words.selectNodeContents(text);
      if ([...words.getClientRects()].some(isBeyond)) problems.push("text beyond the screen: " + said(element));
    }
  }
  for (const card of all(".card").filter((card) => isSeen(card) && !scrolls(card))) {
    words.selectNodeContents(card);
    if ([...words.getClientRects()].some(({ right }) => right > box(card).right + 1)) problems.push("text beyond its card: " + said(card));
  }
  const cover = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const apart = (elements, what) => elements.filter(isSeen).forEach((a, i, seen) => {
    for (const b of seen.slice(i + 1)) if (cover(box(a), box(b))) problems.push(what + " on each other: " + said(a) + ", " + said(b));
  });
  for (const plot of all(".plot")) {
    // Names that slant have boxes which cover each other where the names do not.
    const labels = all(".field > span", plot).filter((label) => !label.matches(".name") || width > 1000), section = box(plot.closest("section"));
    apart(labels, "labels");
    if (!labels.some(isSeen)) problems.push("a chart without labels: " + plot.ariaLabel);
    for (const label of labels.filter(isSeen)) {
      const { left, right } = box(label);
      if (left < section.left || right > section.right) problems.push("a label outside its section: " + said(label));
      if (parseFloat(getComputedStyle(label).fontSize) < 11) problems.push("a label that is too small: " + said(label));
    }
    if (box(plot.querySelector(".field")).width < 120) problems.push("a chart without room: " + plot.ariaLabel);
  }
  for (const text of all("svg text")) {
    const [inner, outer] = [box(text), box(text.closest("svg"))];
    if (inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1) {
      problems.push("text outside its drawing: " + said(text));
    }
  }
  for (const legend of all(".legend")) apart(all("li", legend), "entries of a legend");
  for (const chip of all(".legend .chip, .legend .run, .strips .run, .bars .run").filter(isSeen)) {
    // The first line of the text behind it.
    const text = document.createTreeWalker(chip.parentElement, NodeFilter.SHOW_TEXT).nextNode();
    const range = document.createRange();
    if (text) range.selectNodeContents(text);
    const first = range.getClientRects()[0];
    const middle = (rect) => (rect.top + rect.bottom) / 2;
    if (!first || first.left < box(chip).right - 1 || Math.abs(middle(first) - middle(box(chip))) > 9) problems.push("a mark without its name: " + said(chip.parentElement));
  }
  for (const map of all(".map")) {
    const canvas = map.querySelector("canvas");
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    if (new Set(pixels).size < 3) problems.push("a heat map of one colour");
    if (all(".y span", map).length < 2) problems.push("a heat map without addresses");
    apart(all(".y span", map), "addresses");
  }
  parent.postMessage({ width, problems: problems.slice(0, 12), plots: all(".plot").length, maps: all(".map").length }, "*");
});
"""
WRAPPER = """<!doctype html><body><script>
const heard = [];
addEventListener("message", (event) => { heard.push(event.data); document.body.dataset.heard = JSON.stringify(heard); });
</script>FRAMES"""


def chromium(browser, *arguments, answers):
    """Runs the browser until `answers` takes what it printed for an answer, and gives that answer."""
    said = []
    for attempt in range(ATTEMPTS):
        profile = SCRATCH / "profiles" / f"{attempt}-{re.sub(r'[^A-Za-z0-9]+', '-', ''.join(arguments)[-80:])}"
        # Shared memory of a container is often too small for a browser.
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                   "--disable-sync", "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=5000",
                   f"--user-data-dir={profile}", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            said.append("nothing in 120 s")
            continue
        if done.returncode == 0 and (answer := answers(done.stdout)):
            return answer
        said.append(f"exit status {done.returncode}, {done.stderr.strip()[-300:]}")
    raise AssertionError(f"{arguments[-1]}: the browser has not answered {ATTEMPTS} times: " + "; ".join(said))


def make_pages():
    """The pages, by what they are called; the inputs are small."""
    def imbrex(*arguments):
        done = subprocess.run([IMBREX, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    # A path that no line breaks at, as long as those of real folders are: a page shows it in several places.
    folder = SCRATCH / "a_folder_whose_name_has_no_place_where_a_line_could_end" / "".join(f"part{part}" for part in range(12))
    folder.mkdir(parents=True)
    recording = folder / "file-churn.imbrex.xz"
    shutil.copy(ROOT / "workloads/file-churn.imbrex.xz", recording)
    compare = ["compare", "--quiet", "--trace", recording, "--drive-scale", 16]
    imbrex(*compare, "--limit", 3000, "--open-loop", "--systems", "lru", "--sweep", "cache.capacity=0.5%,1%,2%,5%,10%",
           "--sweep", "translation.persistent_cache=64MiB,128MiB,256MiB,512MiB,1GiB", "--out", SCRATCH / "sweep")
    imbrex(*compare, "--limit", 3000, "--systems", "all", "--out", SCRATCH / "all")
    imbrex("drive", "bench", "st5000as0011", "--quick", "--quiet", "--html", SCRATCH / "bench.html")
    imbrex("reproduce", "hwsr", "figure-14", "--quick", "--quiet", "--out", SCRATCH / "figures")
    make_jobs(imbrex, recording)
    return {"jobs": SCRATCH / "jobs/sweep.html", "figures": SCRATCH / "figures/index.html", "sweep": SCRATCH / "sweep/report.html", "all": SCRATCH / "all/report.html", "bench": SCRATCH / "bench.html"}


def make_jobs(imbrex, recording):
    """Two loads, one of which does not fit the device, over two keys; half of the jobs."""
    (SCRATCH / "sweep.toml").write_text(f"""
name = "jobs"
title = "Jobs"
systems = ["lru", "pore", "smr-only"]
size = "8GiB"
workload = [{{path = "synthetic:wdev-like", limit = 2000}}, {{path = "{recording}", limit = 2000, fit = "scale"}}]
[sweep]
"cache.capacity" = ["1%", "2%", "5%", "10%"]
"cache.mode" = ["write-only", "read-write"]
""")
    imbrex("sweep", "plan", SCRATCH / "sweep.toml", "--emit", SCRATCH / "jobs.jsonl")
    imbrex("sweep", "run-job", SCRATCH / "jobs.jsonl", "--out", SCRATCH / "jobs", "--quiet", "--index", "0-30")
    imbrex("sweep", "collect", SCRATCH / "jobs.jsonl", "--out", SCRATCH / "jobs", "--partial")
    page = (SCRATCH / "jobs/sweep.html").read_text()
    assert "Jobs that failed" in page and "3 jobs are not made" in page and "What fast storage buys" in page


def probe(browser, name, page):
    """What is wrong with a page at each width."""
    text = page.read_text()
    # A page without a script allows none.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text).replace("</main>", f"</main><script>{PROBE}</script>")
    watched = SCRATCH / f"{name}-watched.html"
    watched.write_text(text)
    frames = "".join(f'<iframe src="{watched.as_uri()}" width="{width}" height="900" style="border:0"></iframe>' for width in WIDTHS)
    wrapper = SCRATCH / f"{name}-frames.html"
    wrapper.write_text(WRAPPER.replace("FRAMES", frames))
    heard = chromium(browser, "--window-size=1400,1000", "--dump-dom", wrapper.as_uri(), answers=heard_of_all)
    assert sorted(said["width"] for said in heard) == list(WIDTHS), f"{name}: {[said['width'] for said in heard]}"
    for said in heard:
        assert not said["problems"], f"{name} at {said['width']} px:\n  " + "\n  ".join(said["problems"])
        assert said["plots"] > 0, f"{name} has no charts"
    if name == "all":
        assert all(said["maps"] > 0 for said in heard), "no heat maps"


def heard_of_all(dom):
    """What the pages of all widths have said, or None when one of them is silent."""
    found = re.search(r'data-heard="([^"]*)"', dom)
    heard = json.loads(html.unescape(found[1])) if found else []
    return heard if len(heard) >= len(WIDTHS) else None


def first_pixel(png):
    """The colour at the upper left."""
    data, at, packed = png.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    # No filter changes the first pixel.
    return tuple(zlib.decompressobj().decompress(packed, 4)[1:4])


def screenshot(browser, name, page, width, scheme):
    colour, preferred = SCHEMES[scheme]
    png = SCRATCH / f"{name}-{width}-{scheme}.png"
    chromium(browser, f"--blink-settings=preferredColorScheme={preferred}", f"--window-size={width},{HEIGHT}", f"--screenshot={png}",
             page.as_uri(), answers=lambda _: png.exists())
    what = f"{name} at {width} px, {scheme}"
    assert png.stat().st_size > SHOWS_SOMETHING_BYTES, f"{what}: {png.stat().st_size} bytes, a page of one colour"
    assert first_pixel(png) == colour, f"{what}: the page has the colour {first_pixel(png)}"
    if keep := os.environ.get("IMBREX_SCREENSHOTS"):
        pathlib.Path(keep).mkdir(parents=True, exist_ok=True)
        shutil.copy(png, keep)


browser = next(filter(None, map(shutil.which, BROWSERS)), None)
if browser is None:
    print(f"skipped: none of {', '.join(BROWSERS)} is installed, so no page was looked at")
    sys.exit(77)
pages = make_pages()
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    looks = [threads.submit(probe, browser, name, page) for name, page in pages.items()]
    looks += [threads.submit(screenshot, browser, name, page, width, scheme)
              for name, page in pages.items() for width in WIDTHS for scheme in SCHEMES]
    failures = [str(look.exception()) for look in looks if look.exception()]
if failures:
    sys.exit("\n".join(failures))
