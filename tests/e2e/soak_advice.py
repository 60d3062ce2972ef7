#!/usr/bin/env python3
"""The stack that `imbrex verdict` advises has, on every recording that ships, a mean response time as recorded at most a tenth above
that of the best of all ready-made stacks of one disk and one cache on an SSD, all with a cache of the size advised. The stacks are
found in their own files and run by `imbrex compare`, not taken from the trials of the verdict."""

import json
import pathlib
import subprocess
import tomllib

from _serving import IMBREX

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORST = 1.10


def told(*arguments):
    return subprocess.run([IMBREX, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout


def cache_of(nodes):
    """The one cache on an SSD before one disk, or None for any other stack."""
    caches = [node for node in nodes if isinstance(node.get("below"), dict) and set(node["below"]) == {"flash", "backing"}]
    disks = [node for node in nodes if node["kind"] == "disk"]
    if len(caches) != 1 or len(disks) != 2 or any(node["kind"] in ("slice", "memory-buffer", "read-cache") for node in nodes):
        return None
    return caches[0]["name"]


def stacks():
    names = [system["name"] for system in json.loads(told("systems", "--json"))["systems"]]
    found = {name: cache_of(tomllib.loads(told("systems", "--show", name).decode())["node"]) for name in names}
    return {name: cache for name, cache in found.items() if cache}


def check(trace, caches):
    best = json.loads(told("verdict", trace, "--json", "--quiet"))["advice"]["best"]
    sizes = [word for name, cache in caches.items() for word in ("--set", f"{name}:{cache}.capacity={best['cache_bytes']}B")]
    report = json.loads(told("compare", "--trace", trace, "--systems", ",".join(caches), *sizes, "--open-loop", "--json", "--quiet"))
    means = {run["system"]: run["response_ms"]["mean"] for run in report["runs"]}
    assert set(means) == set(caches), means
    shortest = min(means, key=means.get)
    share = means[best["system"]] / means[shortest]
    print(f"{trace.name}: {best['system']} advised, {best['cache_bytes'] / 2**20:.1f} MiB, {means[best['system']]:.1f} ms; "
          f"shortest of {len(means)} is {shortest}, {means[shortest]:.1f} ms: {share:.3f}", flush=True)
    assert means[best["system"]] == best["mean_ms"], "the verdict tells another mean than the comparison"
    return share


caches_of_stacks = stacks()
shares = [check(trace, caches_of_stacks) for trace in sorted((ROOT / "workloads").glob("*.imbrex*"))]
assert len(shares) >= 7 and max(shares) <= WORST, shares
