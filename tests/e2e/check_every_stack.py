#!/usr/bin/env python3
"""`imbrex check`, `check --data` and `inspect` read an image of every ready-made stack and of every drive that `create` makes one
of: new, after `kill -9` in the middle of its work, and closed. Nothing is found, and nothing is written."""

import json
import random
import shutil
import subprocess

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH

BLOCK = 4096
# What is written to, and how large the images are, but for that of a span.
SIZE = 64 << 20
# Spans, which are as large as what they join.
SPANS = ("spanned", "split", "split-local", "split-dedicated", "four-disks")
# What has no image: the errors of `create` that say so.
NO_IMAGE = ("cannot be served", "not created and served", "keeps no journal")


def run(*words):
    return subprocess.run([IMBREX, *words], capture_output=True, text=True)


def systems():
    document = json.loads(run("systems", "--json").stdout)
    return [entry["name"] for part in ("systems", "drives") for entry in document[part]]


def journals(data):
    """Every member that `inspect` reads a journal of, and which part of its document says what the layer holds."""
    document = json.loads(run("inspect", data, "--json", "--all").stdout)
    assert document["findings"] == [], document["findings"]
    common = {"name", "blocks", "superblocks", "journal", "write_intent"}
    return {member["name"]: sorted(set(member) - common) for member in document["members"]}


def read(data, state):
    before = {path.name: path.stat().st_mtime_ns for path in data.iterdir()}
    for options in ((), ("--data",)):
        done = run("check", data, *options)
        said = done.stdout.splitlines()
        assert done.returncode == 0 and said[-1] == "clean", f"{state}: check {options}: {done.stdout}{done.stderr}"
    text = run("inspect", data)
    assert text.returncode == 0 and "cannot be read" not in text.stdout, f"{state}: {text.stdout}{text.stderr}"
    found = journals(data)
    # The copies of the journal of an array say the same. What it holds is told with one of them.
    silent = [name for name, parts in found.items() if not parts]
    arrays = [name for name, parts in found.items() if parts in (["array"], ["parity_array"])]
    parities = [name for name in silent if " through its layers" not in name]
    is_copy = all(name.startswith("parity") for name in parities) and len(arrays) == max(len(parities), 1)
    assert not silent or is_copy, f"{state}: {found}"
    assert {path.name: path.stat().st_mtime_ns for path in data.iterdir()} == before, f"{state}: something was written"
    return found


def work(client, rng):
    """Little, because some stacks have a log for the smallest workload and rewrite a band for a few blocks."""
    for number in range(60):
        blocks = rng.randint(1, 4)
        within = SIZE // BLOCK if number % 8 == 0 else 128
        offset, length = rng.randrange(within - blocks) * BLOCK, blocks * BLOCK
        if number % 16 == 7:
            client.flush()
        elif number % 16 == 11:
            client.trim(offset, length)
        else:
            client.write(offset, rng.randbytes(length), fua=number % 16 == 3)


def main():
    kinds, refused = {}, []
    for name in systems():
        data = SCRATCH / "data"
        shutil.rmtree(data, ignore_errors=True)
        size = () if name in SPANS else ("--size", "64MiB")
        made = run("create", name, "--data", data, *size)
        if made.returncode != 0:
            assert any(word in made.stderr for word in NO_IMAGE), f"{name}: {made.stderr}"
            refused.append(name)
            continue
        found = read(data, f"{name}, new")
        with Killable(name, data) as server:
            work(Client(server.socket), random.Random(7))
            server.kill()
        assert read(data, f"{name}, killed") == found
        with Killable(name, data) as server:
            client = Client(server.socket)
            work(client, random.Random(8))
            client.close()
        assert read(data, f"{name}, closed") == found
        kinds[name] = found
    for name, parts in (("hwsr", ["memory_buffer", "segments"]), ("s-block", ["memory_buffer", "s_blocks"])):
        assert sorted(part for found in kinds[name].values() for part in found) == parts, kinds[name]
    print(f"{len(kinds)} images clean in three states; no image: {', '.join(refused)}")


main()
