"""The reference traces, which are not part of the repository, and how those are read that do not say it."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Reference files that hold no requests of a host, or need a reader of their own.
NO_TRACES = ("disksim_validate_", "dmsmr_seek_", "hasmr8tb_", "hplajw_1992_1week.srt", "README")
NANOSECONDS = {"format": "disksim", "time_unit": "ns"}
HPLAJW = {"format": "csv", "map": "time=1:s,op=3:R|W,off=4:256,len=5:bytes"}
HOW_READ = {
    "hplajw_1992_1week.decoded.csv.zst": HPLAJW,
    "mqsim_wsrch-small.trace.zst": NANOSECONDS,
    "umass_Financial1_first10k.ssdsim.ascii.zst": NANOSECONDS,
}


def options_of(how_read):
    """The same as options of a command."""
    return [word for key, value in how_read.items() for word in ("--" + key.replace("_", "-"), value)]


def captured_traces():
    """The traces, each with the options by which it is read; none after saying so."""
    named = [pathlib.Path(os.environ["IMBREX_SHARED"])] if "IMBREX_SHARED" in os.environ else []
    for shared in [*named, *(folder / "shared" for folder in ROOT.parents)]:
        if (shared / "traces").is_dir():
            found = [it for it in sorted((shared / "traces").iterdir()) if not it.name.startswith(NO_TRACES)]
            assert len(found) >= 10, found
            return [(it, HOW_READ.get(it.name, {})) for it in found]
    print("SKIPPED: no folder shared/traces above the repository and no IMBREX_SHARED")
    return []
