#!/usr/bin/env python3
"""The file-churn workload does the same for the same seed, something else for another, and what it
says it did is what lies on the disk."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys

CHURN = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "file_churn.py"
SCRATCH = pathlib.Path(os.environ["IMBREX_TMP"])


def churn(*arguments):
    done = subprocess.run([sys.executable, CHURN, *map(str, arguments)], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def tree_hash(root):
    digest = hashlib.sha256()
    for path in sorted(root.glob("*/*")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def one(name, seed):
    root = SCRATCH / name
    assert churn("prepare", root, "--files", 300, "--seed", 1)["created"] == 300
    counts = churn("run", root, "--transactions", 500, "--seed", seed, "--sync-every", 50)
    assert counts["transactions"] == 500
    assert counts["read"] + counts["appended"] == 500
    assert counts["created"] + counts["deleted"] == 500
    assert counts["synced"] > 0
    assert len(list(root.glob("*/*"))) == 300 + counts["created"] - counts["deleted"]
    return tree_hash(root)


first, again, other = one("first", 7), one("again", 7), one("other", 8)
assert first == again, "two runs with one seed differ"
assert first != other, "another seed changes nothing"
