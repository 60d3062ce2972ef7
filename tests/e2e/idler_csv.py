#!/usr/bin/env python3
"""Computes each U, V_c and L of a controller again, from the two tables that `--out` writes and the settings it was given: a program
that shares nothing with Imbrex but the equations of the paper (Idler, IEEE TC 2020, equations 1 and 2)."""

import csv
import math
import os
import pathlib
import subprocess

IMBREX = os.environ["IMBREX"]
OUT = pathlib.Path(os.environ["IMBREX_TMP"]) / "idler_csv"
TIMEOUT_S = 120
U_LOW, U_HIGH, L_MIN_S, L_MAX_S, L_STEP_S = 0.1, 0.8, 0.3, 2.0, 0.1
DRIVE_MANAGED = """name = "used"
[[node]]
name = "disk"
kind = "disk"
drive = "st8000as0002"
[[node]]
name = "translation"
kind = "persistent-cache"
below = "disk"
[[node]]
name = "controller"
kind = "idle-control"
below = "translation"
policy = "idler"
u_start = 0.9
"""


def tables(system, load, settings):
    """The decisions and the changes of the books of a run, in order, numbers as numbers."""
    folder = OUT / "out"
    said = subprocess.run(
        [IMBREX, "compare", "--trace", load, "--limit", "40000", "--streams", "16", "--systems", system, "--out", str(folder),
         *(word for setting in ("controller.log=true", *settings) for word in ("--set", setting))],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert said.returncode == 0, said.stderr
    return [list(csv.DictReader((folder / f"idle_control_{name}.csv").open(encoding="utf-8"))) for name in ("decisions", "ghost")]


class Books:
    """The media cache as the events say it is."""

    def __init__(self, cache_bytes, entries, has_reports, start):
        self.limits = (cache_bytes, entries)
        whole = (int(cache_bytes // 4096 * start) * 4096, int(entries * start))
        self.used, self.freed, self.cleaned_per_s = list(whole), [0, 0], (0.0, 0.0)
        self.has_reports, self.period, self.periods = has_reports, 0.0, 0
        self.zones = {}

    def shares(self):
        return [used / limit for used, limit in zip(self.used, self.limits)]

    def u(self):
        return min(max(self.shares()), 1.0)

    def v_c(self):
        blocks, entries = self.shares()
        return self.cleaned_per_s[0 if blocks > entries else 1]

    def apply(self, row):
        at = float(row["at_s"])
        if row["event"] == "period":
            # What the first report finds out was not cleaned in a period.
            freed = [0, 0] if self.has_reports and self.periods == 0 else self.freed
            length = at - self.period
            if length > 0:
                self.cleaned_per_s = tuple(count / limit / length for count, limit in zip(freed, self.limits))
            assert math.isclose(float(row["used"]), self.u(), rel_tol=1e-6, abs_tol=1e-9), (row, self.u())
            self.freed, self.period, self.periods = [0, 0], at, self.periods + 1
            return
        change = (int(row["bytes"]), int(row["entries"]))
        of_zone = self.zones.setdefault(row["zone"], [0, 0])
        for at in (0, 1):
            if row["event"] == "taken":
                self.used[at] += change[at]
                of_zone[at] += change[at]
            else:
                assert row["zone"] == "" or of_zone[at] == change[at], f"not all of a zone: {row}, {of_zone}"
                self.used[at] -= change[at]
                self.freed[at] += change[at]
        if row["event"] == "freed":
            self.zones.pop(row["zone"])
            assert self.has_reports or row["zone"] == "" or "" not in self.zones, "what was there before is older"


def is_near(first, second):
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-9)


def expected(row, v_c, last):
    """L by the equations, and what equation 2 goes on from."""
    u, arrivals, latency, v_m = (float(row[key]) for key in ("used", "between_arrivals_ms", "latency_ms", "taken_per_s"))
    if u < U_LOW:
        return 0.0, None
    if u <= U_HIGH:
        idle = L_MIN_S if arrivals > latency else 0.0
    elif arrivals > latency:
        idle = L_MAX_S
    else:
        start = L_MIN_S if last is None else last
        idle = max(start - L_STEP_S, L_MIN_S) if v_m <= v_c else min(start + L_STEP_S, L_MAX_S)
    return idle, idle if idle > 0 else last


def check(name, books, decisions, events, least):
    """Every decision of a run. Events of its own instant may have come before it or behind it."""
    at, last, idles = 0, None, 0
    for row in decisions:
        time = float(row["at_s"])
        while at < len(events) and float(events[at]["at_s"]) < time:
            books.apply(events[at])
            at += 1
        while not (is_near(books.u(), float(row["used"])) and is_near(books.v_c(), float(row["cleaned_per_s"]))):
            assert at < len(events) and float(events[at]["at_s"]) == time, (name, row, books.u(), books.v_c())
            books.apply(events[at])
            at += 1
        idle, last = expected(row, books.v_c(), last)
        assert is_near(idle, float(row["idle_s"])), (name, row, idle)
        idles += idle > 0
    for event in events[at:]:
        books.apply(event)
    high = sum(row["regime"] == "high" for row in decisions)
    print(f"{name}: {len(decisions)} decisions, {idles} idle periods, {high} above u_high, {books.periods} periods")
    assert idles >= least and books.periods > 3, name


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    proj1 = "synthetic:idler-proj1?interval_us=[12000,16000]/64"
    scaled = ("translation.persistent_cache=437500 KB", "translation.entries=2844", "controller.report_zones_every_s=9.375")
    space = "synthetic:idler-proj1?interval_us=[12000,16000]&write_bytes=262144.0/64"
    few = ("translation.persistent_cache=437500 KB", "translation.entries=300", "controller.report_zones_every_s=9.375")
    cache_bytes = 437500 * 1000 // 4096 * 4096
    for name, load, settings, entries, least in (
        ("entries are short", proj1, scaled, 2844, 10),
        ("few entries", proj1, few, 300, 30),
        ("space is short", space, scaled, 2844, 10),
    ):
        decisions, events = tables("idler", load, settings)
        check(name, Books(cache_bytes, entries, True, 0.0), decisions, events, least)
    used = OUT / "used.toml"
    used.write_text(DRIVE_MANAGED, encoding="utf-8")
    settings = ("translation.persistent_cache=437500 KB", "translation.entries=2000", "controller.report_zones_every_s=9.375")
    decisions, events = tables(str(used), proj1, settings)
    check("no reports, used before", Books(cache_bytes, 2000, False, 0.9), decisions, events, 10)


main()
