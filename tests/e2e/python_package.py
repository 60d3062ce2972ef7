#!/usr/bin/env python3
"""The Python package: the wheel is built, installed into an empty environment and used there; then pandas, polars, DuckDB and
pyarrow read its tables, and mypy reads its types. What is checked of it is in _python_checks.py, and of the engines of its sweeps in
_sweep_engines.py.

IMBREX_SOAK=1 (`make soak`) builds one from a source distribution too, which compiles everything anew. It kills workers of each engine
fifty times, and those of a Ray cluster of two nodes of which one is lost and comes back."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import _two_nodes

ROOT = pathlib.Path(__file__).parent.parent.parent
CARGO = os.environ.get("CARGO") or "cargo"
TMP = pathlib.Path(os.environ["IMBREX_TMP"])
IS_SOAK = os.environ.get("IMBREX_SOAK") == "1"
WHEEL_BYTES_MAX = 40 << 20
READERS = ["pandas", "pyarrow", "polars", "duckdb", "matplotlib", "mypy", "submitit"]
ENGINES = ["threads", "pool", "submitit"]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def run(*words, **more):
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout}"
    return done.stdout


def environment(name, packages):
    """A Python of its own with packages from outside."""
    made = subprocess.run([sys.executable, "-m", "venv", TMP / name], capture_output=True, text=True)
    python = TMP / name / "bin" / "python"
    if made.returncode == 0 and packages:
        pip = [python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "15", *packages]
        made = subprocess.run(pip, capture_output=True, text=True)
    if made.returncode != 0:
        said = (made.stderr or made.stdout).strip().splitlines()
        skip(f"{', '.join(packages)} cannot be installed: {said[-1] if said else ''}")
    return python


def build(python, out):
    """Builds the wheel as docs/python.md says."""
    run("make", "--no-print-directory", "wheel", f"PYTHON={python}", f"CARGO={shutil.which(CARGO)}", f"WHEEL_OUT={out}", cwd=ROOT)
    [wheel] = out.glob("imbrex-*.whl")
    assert wheel.stat().st_size < WHEEL_BYTES_MAX, wheel.stat()
    return wheel


def try_alone(wheel):
    """An environment with nothing else: the program makes a trace, and there is a first table."""
    python = environment("alone", [])
    run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    run(python.with_name("imbrex"), "trace", "synth", "wdev-like", "first.csv", "--scale", "100", cwd=TMP)
    table = run(python, "-c", "import imbrex; print(imbrex.compare('first.csv', systems=['lru', 'ride']))", cwd=TMP)
    assert "I/O time" in table and "ride" in table, table


def try_engines(python, kills, engines, before=(), **more):
    folder = TMP / f"sweep-{engines[-1]}"
    folder.mkdir()
    script = ROOT / "tests/e2e/_sweep_engines.py"
    print(run(*before, python, script, kills, *engines, cwd=folder, **more), end="")


def try_ray(wheel):
    """Two nodes; whatever works for a sweep is killed at random moments, and the second node is lost now and then."""
    python = environment("ray", ["ray>=2.50"])
    run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
    cluster = _two_nodes.Cluster(python.with_name("ray"), TMP)
    over = threading.Event()

    def lose_and_start():
        while not over.wait(12):
            cluster.lose_second()
            cluster.start_second()

    losing = threading.Thread(target=lose_and_start)
    try:
        cluster.begin()
        losing.start()
        more = {"RAY_AUTH_MODE": "disabled", "IMBREX_RAY_ADDRESS": _two_nodes.ADDRESS, "IMBREX_VICTIMS": "pgrep -f ^ray::(IDLE|_call)"}
        try_engines(python, 50, ["ray"], ["ip", "netns", "exec", cluster.networks[0]], env={**os.environ, **more})
    finally:
        over.set()
        if losing.is_alive():
            losing.join()
        cluster.end()


if sys.version_info < (3, 11):
    skip(f"the package needs Python 3.11, and this is {sys.version.split()[0]}")
builder = environment("builder", ["maturin>=1.16,<2"])
wheel = build(builder, TMP / "wheel")
try_alone(wheel)
if IS_SOAK:
    run(builder.with_name("maturin"), "sdist", "--out", TMP / "sources", cwd=ROOT)
    [sources] = (TMP / "sources").glob("imbrex-*.tar.gz")
    run(builder, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", TMP / "of-sources", sources)
    [built] = (TMP / "of-sources").glob("imbrex-*.whl")
    run(environment("of-sources-only", []), "-m", "pip", "install", "--quiet", "--no-index", built)
reader = environment("reader", READERS)
run(reader, "-m", "pip", "install", "--quiet", "--no-index", wheel)
for_matplotlib = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(TMP)}
print(run(reader, "-W", "error", ROOT / "tests/e2e/_python_checks.py", env={**os.environ, **for_matplotlib}), end="")
try_engines(reader, 50 if IS_SOAK else 2, ENGINES)
if IS_SOAK:
    try_ray(wheel)
for words in (["mypy", "--cache-dir", TMP / "mypy", "--config-file", ROOT / "pyproject.toml"],
              ["stubtest", "--mypy-config-file", ROOT / "pyproject.toml", "imbrex._imbrex"]):
    run(reader.with_name(words[0]), *words[1:], cwd=ROOT if words[0] == "mypy" else TMP)
print(f"a wheel of {wheel.stat().st_size / 1e6:.1f} MB")
