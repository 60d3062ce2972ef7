"""What is checked of the package `imbrex` from Python. Run by python_package.py in an environment that has the package and those
who read its tables."""

import _thread
import contextlib
import copy
import csv
import gc
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import traceback

import duckdb
import imbrex
import pandas
import polars
import pyarrow
from _captured import captured_traces

ROOT = pathlib.Path(__file__).parent.parent.parent
IMBREX, TMP = os.environ["IMBREX"], pathlib.Path(os.environ["IMBREX_TMP"])
RECORDING = str(ROOT / "workloads" / "pgbench.imbrex.xz")
CONSOLE = pathlib.Path(sys.executable).with_name("imbrex")


def shell(*words, program=IMBREX):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True)


def without_cost(document):
    """A document without what its simulation cost, which two runs never share."""
    document = copy.deepcopy(document)
    for run in document["runs"]:
        run.pop("simulation")
    return document


def refused(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return error
    raise AssertionError(f"{words}: it was not refused")


def check_a_report_is_the_same_bytes_as_in_the_shell():
    report = imbrex.compare(RECORDING, systems=["lru", "pore"], sweep={"cache.capacity": ["64MiB", "128MiB"]}, limit=5000,
                            queue_depth=2)
    typed = shell("compare", "--trace", RECORDING, "--systems", "lru,pore", "--sweep", "cache.capacity=64MiB,128MiB",
                  "--limit", 5000, "--queue-depth", 2, "--json", "--quiet")
    assert all(run["simulation"]["peak_rss_bytes"] is None for run in json.loads(report.json)["runs"])
    mine, theirs = without_cost(json.loads(report.json)), without_cost(json.loads(typed.stdout))
    # The binary and the package may have been built from two commits.
    assert mine.pop("commit") and theirs.pop("commit")
    assert json.dumps(mine) == json.dumps(theirs)
    folder = TMP / "written"
    report.write(folder)
    assert (folder / "report.html").read_text() == report.page.text
    for name, table in report.tables.items():
        assert (folder / f"{name}.csv").read_text() == table.to_csv(), name
    again = imbrex.load(folder)
    assert again.json == report.json and str(again) == str(report)
    assert "io_time_s" in report.runs.column_names and len(report.runs) == 4
    assert "<table>" in report._repr_html_() and "<pre>" in report.runs._repr_html_()
    assert len(report.diff(again)) == 0
    small = imbrex.compare(RECORDING, systems=["lru"], set={"cache.capacity": "32MiB"}, limit=20000)
    large = imbrex.compare(RECORDING, systems="lru", set=["cache.capacity=128MiB"], limit=20000)
    rows = small.diff(large).to_pandas()
    assert {"lru"} == set(rows["run"]) and (rows["this"] != rows["other"]).all() and len(rows) > 10, rows


def check_others_read_a_table_where_it_is():
    report = imbrex.compare(RECORDING, systems=["lru", "ride"], limit=3000)
    runs = report.runs
    frame, arrow = polars.DataFrame(runs), pyarrow.table(runs)
    names = ["requests", "io_time_s"]
    addresses = [arrow[name].chunk(0).buffers()[-1].address for name in names]
    assert addresses == [frame[name].to_arrow().buffers()[-1].address for name in names]
    assert addresses == [pyarrow.table(runs)[name].chunk(0).buffers()[-1].address for name in names]
    numbers = arrow["requests"].chunk(0).to_pandas(zero_copy_only=True)
    assert numbers.to_numpy().ctypes.data == addresses[0]
    assert runs.to_pandas().equals(arrow.to_pandas()) and runs.to_polars().equals(frame)
    assert duckdb.sql("select sum(requests)::bigint from runs").fetchall() == [(6000,)]
    capsule = runs.__arrow_c_stream__()

    class Same:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule

    assert pyarrow.table(Same()).equals(arrow)
    refused(pyarrow.ArrowInvalid, lambda: pyarrow.table(Same()))


def check_a_million_rows_are_the_same_for_everybody():
    path = TMP / "million.imbrex"
    said = imbrex.synthesise("wdev-like", path)
    assert "synthetic" in said, said
    trace = imbrex.Trace(path)
    arrow = pyarrow.table(trace)
    assert arrow.num_rows > 1_000_000, arrow.num_rows
    frame = polars.DataFrame(trace)
    assert frame.height == arrow.num_rows
    for name in ("time_ns", "offset_bytes", "length_bytes", "device"):
        assert frame[name].to_arrow().equals(arrow[name].combine_chunks()), name
    assert frame["operation"].to_list() == arrow["operation"].to_pylist()
    assert (arrow["offset_bytes"].to_pandas() == frame["offset_bytes"].to_numpy()).all()
    sums = duckdb.sql("select count(*), sum(offset_bytes)::hugeint, sum(length_bytes)::hugeint from trace").fetchall()
    of_frame = (frame.height, frame["offset_bytes"].cast(polars.Int128).sum(), frame["length_bytes"].cast(polars.Int128).sum())
    assert sums == [of_frame], (sums, of_frame)
    assert pyarrow.table(imbrex.Trace(path, limit=10)).equals(arrow.slice(0, 10).combine_chunks())


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_nothing_leaks():
    series = imbrex.compare(RECORDING, systems="lru", limit=20000).series
    assert len(series) > 1000
    for number in range(1000):
        series.__arrow_c_stream__()
        pyarrow.table(series)
        if number == 100:
            gc.collect()
            before = resident_bytes()
    gc.collect()
    # One copy of the table each round would be hundreds of MiB.
    assert resident_bytes() - before < 16 << 20, (before, resident_bytes())


def check_what_is_refused():
    error = refused(imbrex.TraceError, lambda: imbrex.compare("nowhere.csv"), "nowhere.csv", "No such file")
    assert error.file == "nowhere.csv" and error.line is None
    bad = TMP / "bad.csv"
    bad.write_text("128166372003061629,hm,1,Read,383496192,32768,413\n128166372003061629,hm,1,Foo,383496192,32768,413\n")
    error = refused(imbrex.TraceError, lambda: imbrex.compare(bad, systems="lru"), "line 2", "accepted: Read or Write")
    assert (error.file, error.line, error.value) == (str(bad), 2, "Foo")
    error = refused(imbrex.TraceError, lambda: imbrex.Trace("nowhere.csv"), "nowhere.csv")
    assert error.file == "nowhere.csv"
    refused(imbrex.UsageError, lambda: imbrex.Trace(RECORDING, format="mrs"), "--format", "unknown trace format")
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, sistems="lru"), "sistems", "did you mean systems", "accepted")
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, queue_depth=0), "'0' for '--queue-depth <N>'")
    refused(ValueError, lambda: imbrex.compare(RECORDING, systems="lru", set={"cache.capcity": "1%"}), "did you mean `capacity`")
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, open_loop="yes"), "open_loop='yes'", "True or False")
    refused(imbrex.Error, lambda: imbrex.compare(RECORDING, systems="lruu"), "did you mean `lru`")
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, warm_up="never"), "warm-up")
    refused(imbrex.UsageError, lambda: imbrex.run(ROOT / "experiments/pore/fig13.toml", resume=True), "with --out")
    for wrong in (3, None, b"bytes"):
        refused(TypeError, lambda: imbrex.compare(wrong), repr(wrong), "accepted: a path")
    refused(TypeError, lambda: imbrex.compare(RECORDING, limit=object()), "limit=")
    refused(OSError, lambda: imbrex.load("nowhere.json"), "nowhere.json")
    bad.write_text("{}")
    refused(ValueError, lambda: imbrex.load(bad), "is no report")
    refused(KeyError, lambda: imbrex.systems().table("drivers"))
    refused(TypeError, lambda: imbrex.mrc(RECORDING, limit=100).table("requests"), "accepted: points")


def check_every_function_answers():
    experiment = ROOT / "experiments" / "pore" / "fig13.toml"
    several = imbrex.run(experiment, scale=400)
    assert {"reports", "rows"} <= set(several), several.keys()
    assert not pathlib.Path("results").exists()
    assert imbrex.reproduce("pore", "fig13", scale=400)["rows"]
    assert imbrex.bound(RECORDING, limit=2000)["bands_rewritten"]
    assert imbrex.characterise(RECORDING, blocks=None)["requests"] == 377_243
    assert len(imbrex.mrc(RECORDING, limit=2000, sizes=["1%", "64MiB"]).table("points")) == 2
    assert len(imbrex.movement(RECORDING, limit=2000).table("models")) == 4
    assert "lru" in [it["name"] for it in imbrex.systems()["systems"]]
    found = imbrex.verdict(RECORDING, limit=500, drive=["st8000as0002"], no_cache=True, requests_max=20000)
    assert found["schema"].startswith("imbrex.verdict"), found.keys()


@contextlib.contextmanager
def interrupt_after(seconds):
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def interrupted(seconds, call):
    with interrupt_after(seconds):
        return call()


def check_ctrl_c_keeps_what_is_finished():
    # How long the first run takes nobody knows.
    stopped = None
    for wait_s in (3, 6, 12, 24):
        try:
            with interrupt_after(wait_s):
                imbrex.compare("synthetic:wdev-like/4", systems=["cmr-only", "lru", "pore", "ride", "hwsr"], repeat=8, jobs=1)
        except imbrex.Stopped as error:
            stopped = error
            if error.report is not None:
                break
    assert stopped is not None and stopped.report is not None, stopped
    document = stopped.report.to_dict()
    assert document["left"] and document["runs"], document.keys()
    stopped = refused(imbrex.Stopped, lambda: interrupted(2, lambda: imbrex.reproduce("pore", scale=1, jobs=1)))
    assert stopped.report is None or stopped.report["left"], stopped.report
    began = time.monotonic()
    with interrupt_after(1):
        refused(KeyboardInterrupt, lambda: [imbrex.characterise("synthetic:usr-like") for _ in range(20)], "stopped")
    assert time.monotonic() - began < 60


def turns_of_another_thread(call):
    """How often another thread has its turn while a call lasts."""
    turns = 0
    is_over = threading.Event()

    def count():
        nonlocal turns
        while not is_over.is_set():
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        call()
    finally:
        is_over.set()
        thread.join()
    return turns


def check_other_threads_go_on():
    turns = turns_of_another_thread(lambda: imbrex.compare(RECORDING, systems="lru", limit=50000))
    assert turns > 10, turns


def check_the_program_in_the_wheel():
    assert shell("--version", program=CONSOLE).stdout.startswith("imbrex 0.")
    assert shell("systems", program=CONSOLE).stdout == shell("systems").stdout
    for words in (("compare",), ("compare", "--trace", "nowhere.csv"), ("check", "--nothing"), ("systems", "--show", "nothing")):
        binary, console = shell(*words), shell(*words, program=CONSOLE)
        assert (console.returncode, console.stderr) == (binary.returncode, binary.stderr), words
    words = [CONSOLE, "compare", "--trace", "synthetic:wdev-like", "--repeat", "40", "--jobs", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130 and "stopp" in said, said


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def lru():
    """The LRU of docs/python.md."""
    [block] = [block for block in blocks((ROOT / "docs" / "python.md").read_text()) if "class Lru" in block]
    seen = {"imbrex": imbrex}
    exec(block.partition("\n\n\ntried = ")[0], seen)
    return seen["Lru"]


class LruBand:
    """With the least recently used block leave all of its band."""

    made = []

    def __init__(self, cache):
        self.cache, self.order, self.bands, self.dirty = cache, {}, {}, set()
        assert 0 < cache.capacity < cache.blocks and cache.bands > 1 and cache.log_blocks
        first = cache.blocks_of(0)
        assert (first.start, cache.band_of(first.stop - 1), cache.band_of(first.stop)) == (0, 0, 1)
        assert cache.blocks_of(cache.bands - 1).stop == cache.blocks
        LruBand.made.append(self)

    def on_insert(self, block, is_write):
        self.bands.setdefault(self.cache.band_of(block), set()).add(block)
        self.order[block] = None
        self.dirty |= {block} if is_write else set()

    def on_access(self, block, is_write):
        del self.order[block]
        self.order[block] = None
        self.dirty |= {block} if is_write else set()

    def victims(self):
        return sorted(self.bands[self.cache.band_of(next(iter(self.order)))])

    def on_remove(self, block):
        del self.order[block]
        self.bands[self.cache.band_of(block)].remove(block)
        self.dirty.discard(block)


def assert_the_same(word, make, trace, capacity, **options):
    """A policy in Python, and the one of Imbrex with this word, have the same run; gives how often anything left."""
    policies = {"cache.policy": [word, "python:mine"]}
    report = imbrex.compare(trace, systems="lru", policies={"mine": make}, set={"cache.capacity": capacity}, sweep=policies,
                            fit="wrap", **options)
    own, mine = without_cost(report.to_dict())["runs"]
    assert mine.pop("brought_policies") == ["python:mine"] and mine["configuration"]["node"][-1]["policy"] == "python:mine"
    for run in own, mine:
        for key in ("parameters", "configuration", "resolved"):
            run.pop(key)
    assert mine == own, (word, trace)
    note = "the policy python:mine is code of the caller"
    assert note in str(report) and note in report.page.text
    return own["nodes"]["cache"]["dirty_evictions"] + own["nodes"]["cache"]["clean_evictions"]


def check_a_policy_in_python_counts_what_the_same_in_rust_does():
    recipes = sorted(it.stem for it in (ROOT / "workloads" / "synthetic").glob("*.toml"))
    left = [assert_the_same("lru", lru(), f"synthetic:{recipe}", "1MiB", limit=1000) for recipe in recipes]
    assert len(left) > 30 and sum(count > 0 for count in left) > 20, left
    assert assert_the_same("lru", lru(), RECORDING, "1MiB", limit=20000, queue_depth=4) > 10_000
    assert assert_the_same("lru-band", LruBand, RECORDING, "4MiB", limit=20000) > 1000
    LruBand.made.clear()
    report = imbrex.compare(RECORDING, systems="lru", policies={"mine": LruBand}, limit=5000, set={"cache.policy": "python:mine"})
    [policy], [run] = LruBand.made, report.to_dict()["runs"]
    assert len(policy.dirty) == run["dirty_blocks_left"] > 0
    for trace, how_read in captured_traces():
        assert_the_same("lru", lru(), trace, "2MiB", limit=8000, **how_read)
    if os.environ.get("IMBREX_SOAK") == "1":
        recordings = sorted((ROOT / "workloads").glob("*.imbrex.xz"))
        assert len(recordings) == 7, recordings
        for recording in recordings:
            assert assert_the_same("lru", lru(), str(recording), "2%", untimed=True) > 1000, recording


def tried(make, **options):
    given = {"limit": 20000, "jobs": 2, **options}
    return imbrex.compare(RECORDING, systems="lru", policies={"mine": make}, sweep={"cache.policy": ["lru", "python:mine"]}, **given)


def check_what_a_policy_may_not_do():
    def with_victims(victims):
        return type("Wrong", (lru(),), {"victims": victims})

    def raising(self):
        raise ValueError("no idea")

    error = refused(imbrex.Error, lambda: tried(with_victims(raising)), 'policy = "python:mine": victims: ValueError: no idea')
    assert isinstance(error.__cause__, ValueError)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert [frame.name for frame in frames] == ["raising"] and frames[0].line == 'raise ValueError("no idea")'
    for wrong, words in ((["abc"], "'abc'"), ([1.5], "1.5"), ([-1], "-1"), ([None], "None"), (None, "None"), (3, "3")):
        error = refused(imbrex.Error, lambda: tried(with_victims(lambda self: wrong)), f"victims: {words};", "accepted: ")
        assert error.__cause__ is None
    there = "accepted: some of the "
    refused(imbrex.Error, lambda: tried(with_victims(lambda self: [10**12])), "block 1000000000000 is not in the cache", there)
    refused(imbrex.Error, lambda: tried(with_victims(lambda self: [])), "there is none", there)
    refused(imbrex.Error, lambda: tried(with_victims(lambda self: [*self.order, *self.order])), "is there twice", "each once")
    refused(imbrex.Error, lambda: tried(lambda cache: object()), "has no method on_insert", "accepted: one with on_insert")
    refused(imbrex.Error, lambda: tried(lambda cache: cache.band_of(1 << 40)), "ValueError: block 1099511627776", "accepted: 0 to")
    refused(imbrex.Error, lambda: tried(lambda cache: cache.blocks_of(1 << 30)), "ValueError: band 1073741824", "accepted: 0 to")
    refused(TypeError, lambda: tried("Lru"), "mine='Lru'", "accepted: a class")
    for name in ("", "a b", "python:mine", 3):
        refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, policies={name: lru()}), repr(name), "accepted: letters")
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, policies={"mine": lru()}), 'no stack has the policy "python:mine"')
    refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, systems="lru", set={"cache.policy": "python:mine"}), "python:mine",
            "has brought none")
    alone = {"systems": "lru", "policies": {"mine": lru()}, "limit": 2000, "set": {"cache.policy": "python:mine"}}
    error = refused(imbrex.Error, lambda: imbrex.compare(RECORDING, warm_up=10, save_state=TMP / "a.state", **alone), "--save-state",
                    "cannot be saved")
    assert len(str(error).splitlines()) == 1
    alone["set"]["cache.durable"] = True
    refused(imbrex.Error, lambda: imbrex.compare(RECORDING, **alone), "in a durable cache")


def check_runs_beside_a_policy_that_fails_are_kept():
    folder = TMP / "kept"
    failing = type("Failing", (lru(),), {"victims": lambda self: 1 // 0})
    error = refused(imbrex.Error, lambda: tried(failing, out=folder), "ZeroDivisionError")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert len(list((folder / "finished-runs").iterdir())) == 1
    report = tried(lru(), out=folder, resume=True)
    own, mine = (run["nodes"] for run in report.to_dict()["runs"])
    assert own == mine and not (folder / "finished-runs").exists()
    experiment = TMP / "tried.toml"
    experiment.write_text(f'''
        name = "tried"
        title = "a policy in Python"
        systems = ["lru"]
        workload = {{ path = "{RECORDING}", limit = 5000 }}
        sweep = {{ "cache.policy" = ["lru", "python:mine"], "cache.capacity" = ["4MiB", "8MiB"] }}
    ''')
    of_each = [run["nodes"] for run in imbrex.run(experiment, policies={"mine": lru()}).to_dict()["runs"]]
    assert len(of_each) == 4 and any(of_each[0] == other for other in of_each[1:]), of_each
    refused(imbrex.Error, lambda: imbrex.run(experiment), "has brought none")


ENDLESS = '''
import imbrex, os, signal, threading, time

class Endless:
    def __init__(self, cache): pass
    def on_insert(self, block, is_write): pass
    on_access = on_insert
    def victims(self):
        threading.Thread(target=interrupt, daemon=True).start()
        while True: pass
    def on_remove(self, block): pass

def interrupt():
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

imbrex.compare("synthetic:wdev-like/20", systems="lru", policies={"endless": Endless}, set={"cache.policy": "python:endless"})
'''


def check_policies_and_threads():
    sizes = {"cache.policy": ["python:mine"], "cache.capacity": ["2MiB", "4MiB", "8MiB", "16MiB"]}
    turns = turns_of_another_thread(lambda: imbrex.compare(RECORDING, systems="lru", policies={"mine": lru()}, sweep=sizes,
                                                           limit=20000, jobs=4))
    assert turns > 10, turns
    began = time.monotonic()
    refused(imbrex.Stopped, lambda: interrupted(1, lambda: imbrex.compare(
        RECORDING, systems="lru", policies={"mine": lru()}, sweep=sizes, repeat=1000, jobs=4)), "stopped")
    assert time.monotonic() - began < 60
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=120)
    assert ended.returncode in (130, -signal.SIGINT), ended
    assert "KeyboardInterrupt" in ended.stderr and "FATAL" not in ended.stderr, ended.stderr


def check_requests_are_the_lines_of_the_log():
    options = {"systems": ["lru", "pore"], "sweep": {"cache.capacity": ["4MiB", "8MiB"]}, "limit": 3000, "open_loop": True}
    file = TMP / "requests.csv"
    assert imbrex.compare(RECORDING, log_requests=file, **options).requests is None
    report = imbrex.compare(RECORDING, log_requests=True, **options)
    assert report.requests.to_csv() == file.read_text()
    table = pyarrow.table(report.requests)
    kinds = [str(field.type) for field in table.schema]
    assert kinds == ["string", "uint64", "string", "uint64", "uint64", "double", "double", "double", "string"], kinds
    with open(file, newline="", encoding="utf-8") as opened:
        lines = list(csv.DictReader(opened))
    of_kind = {"string": lambda text: text or None, "uint64": int, "double": float}
    read = [{field.name: of_kind[str(field.type)](line[field.name]) for field in table.schema} for line in lines]
    assert table.to_pylist() == read and len(read) == 12000
    assert set(table["run"].to_pylist()) == {f"{system} capacity={size}" for system in ("lru", "pore") for size in ("4MiB", "8MiB")}
    frame, column = polars.DataFrame(report.requests), "end_s"
    assert frame[column].to_arrow().buffers()[-1].address == table[column].chunk(0).buffers()[-1].address
    assert imbrex.compare(RECORDING, systems="lru", limit=100).requests is None
    for option in ({"untimed": True}, {"out": TMP / "no", "resume": True}):
        refused(imbrex.UsageError, lambda: imbrex.compare(RECORDING, systems="lru", log_requests=True, **option), "log_requests with --")


def check_the_lines_of_readme_and_docs():
    folder = TMP / "of-a-reader"
    folder.mkdir()
    os.chdir(folder)
    made = shell("trace", "convert", RECORDING, "mytrace.csv.gz", "--limit", 4000, "--quiet")
    assert made.returncode == 0, made.stderr
    [lines] = blocks((ROOT / "README.md").read_text())
    assert len(lines.splitlines()) == 5, lines
    seen = {}
    exec(lines, seen)
    assert list(seen["times"].columns) == ["lru", "pore", "ride"] and list(seen["times"].index) == ["1%", "2%", "5%"]
    import matplotlib.pyplot as pyplot

    assert len(pyplot.gcf().axes[0].lines) == 3
    pyplot.savefig(TMP / "picture.svg")
    seen = {}
    for block in blocks((ROOT / "docs" / "python.md").read_text()):
        exec(block, seen)
    assert pathlib.Path("results/mine/report.html").exists()


def check_figures_for_papers():
    """They have the width of a column, letters stay letters, and the style of the caller stays as it is."""
    import matplotlib
    from imbrex import plots

    before = dict(matplotlib.rcParams)
    sweep = {"cache.capacity": ["16MiB", "32MiB", "64MiB"]}
    report = imbrex.compare(RECORDING, limit=2000, systems=["lru", "pore", "smr-only"], sweep=sweep)
    figure = plots.over(report, "cache.capacity", "response_mean_ms")
    lines = figure.axes[0].lines
    runs = report.runs.to_pandas().set_index("run")["response_mean_ms"]
    assert [line.get_label() for line in lines] == ["lru", "pore", "smr-only"]
    assert list(lines[0].get_ydata()) == [runs[f"lru capacity={size}"] for size in sweep["cache.capacity"]]
    assert list(lines[2].get_ydata()) == [runs["smr-only"]] * 3
    for name, made in (("over", figure), ("bars", plots.bars(report, size="text")), ("latency", plots.latency(report))):
        width = plots.WIDTHS_INCHES["text" if name == "bars" else "column"]
        plots.save(made, TMP / f"{name}.pdf")
        pdf = (TMP / f"{name}.pdf").read_bytes()
        box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ", pdf)
        assert pdf.startswith(b"%PDF") and abs(float(box[1]) - 72 * width) < 0.1, box
        assert b"/Type3" not in pdf and b"/Type 3" not in pdf
        plots.save(made, TMP / f"{name}.svg")
        assert "<text" in (TMP / f"{name}.svg").read_text()
    assert dict(matplotlib.rcParams) == before
    error = refused(imbrex.UsageError, lambda: plots.bars(report, "io_time"), "io_time: no column", "io_time_s")
    assert error.value == "io_time"
    refused(imbrex.UsageError, lambda: plots.bars(report, size="page"), "size='page'", "column, text")
    untimed = imbrex.compare(RECORDING, limit=2000, systems=["lru"], untimed=True)
    refused(imbrex.UsageError, lambda: plots.latency(untimed), "without times")


def check_the_notebooks():
    """Every cell of every notebook, from top to bottom, in the folder of a reader who has a trace."""
    folder = TMP / "of-a-reader"
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
    assert len(notebooks) == 6, notebooks
    os.chdir(folder)
    for notebook in notebooks:
        seen = {}
        for cell in json.loads(notebook.read_text())["cells"]:
            code = "".join(cell["source"])
            if cell["cell_type"] == "code":
                assert not cell["outputs"], f"{notebook}: outputs do not belong into the repository"
                exec(compile(code, notebook.name, "exec"), seen)
        if "rows" in seen:
            assert len(seen["rows"]) > 2 and set(seen["rows"]["agrees"]) <= {"true", "false"}, seen["rows"]
    assert (folder / "report.html").stat().st_size > 10_000
    import matplotlib.pyplot as pyplot

    pyplot.close("all")


def main():
    os.chdir(TMP)
    assert pandas.__version__
    # What a shell starts in the background ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            began = time.monotonic()
            check()
            print(f"{time.monotonic() - began:6.1f} s  {name.removeprefix('check_').replace('_', ' ')}", flush=True)


if __name__ == "__main__":
    main()
