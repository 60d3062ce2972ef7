#!/usr/bin/env python3
"""Every number of `imbrex reproduce` that disagrees has one of the named reasons, and the summaries by paper, by basis and by
reason add up to the rows."""

import json
import subprocess

from _serving import IMBREX

printed = subprocess.run([IMBREX, "reproduce", "--json", "--quiet"], check=True, stdout=subprocess.PIPE).stdout
document = json.loads(printed)
rows = document["rows"]
for row in rows:
    assert (row["reason"] is None) == row["agrees"], row
unexplained = [row for row in rows if row["reason"] == "unexplained"]
assert not unexplained, "\n".join(f"{row['paper']} {row['figure']}: {row['metric']}" for row in unexplained)
assert sum(tally["rows"] for tally in document["reasons"]) == sum(not row["agrees"] for row in rows)
for key in ("rows", "agree"):
    by_paper = sum(tally[key] for paper in document["papers"] for tally in paper["summary"])
    assert by_paper == sum(tally[key] for tally in document["summary"])
