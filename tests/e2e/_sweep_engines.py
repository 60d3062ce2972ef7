"""What is checked of the engines of sweeps. `_sweep_engines.py KILLS ENGINE...` runs in an environment that has the package and what
the engines need; `_sweep_engines.py drive ENGINE FOLDER` is a driver that makes the jobs in the working folder."""

import concurrent.futures
import hashlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import imbrex
from imbrex import engines, sweep

ROOT = pathlib.Path(__file__).parent.parent.parent
CHOOSE = random.Random(36)
JOBS = 96
#: Where a Ray cluster is that somebody has started; else one begins with the driver.
RAY_ADDRESS = os.environ.get("IMBREX_RAY_ADDRESS")


def ray():
    import ray as package

    package.init(address=RAY_ADDRESS, log_to_driver=False, logging_level="ERROR")
    return engines.Ray(chunk_jobs=8)


ENGINES = {
    "threads": lambda: engines.Threads(2),
    "pool": lambda: engines.Executor(concurrent.futures.ProcessPoolExecutor(2), chunk_jobs=8),
    "submitit": lambda: engines.Submitit("submitit", cluster="local", chunk_jobs=24, timeout_min=10),
    "ray": ray,
}


def drive(engine, out):
    """Makes the jobs; ends with status 3 when the engine has lost a worker that it does not replace."""
    try:
        print(sweep.run("jobs.jsonl", out, ENGINES[engine]()), flush=True)
    except (concurrent.futures.BrokenExecutor, imbrex.Error) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        # A pool that has lost a worker may wait for it for ever.
        os._exit(3)
    except KeyboardInterrupt as stopped:
        print(f"{type(stopped).__name__}: {stopped}", flush=True)
        sys.exit(130)


def driver(engine, out):
    words = [sys.executable, __file__, "drive", engine, out]
    return subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def session_of(process):
    """The processes of the session that a driver leads, itself among them."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == process.pid and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end(process):
    for pid in session_of(process):
        kill(pid)
    process.communicate()


def table(out):
    done = sweep.collect("jobs.jsonl", out)
    assert done["rows"] == JOBS and not done["failed"], done
    return hashlib.sha256(pathlib.Path(done["parquet"]).read_bytes()).hexdigest()


def victim(process, threads_alone):
    """What is killed: one of those who work for the driver, now and then the driver; none while nobody works."""
    words = os.environ.get("IMBREX_VICTIMS", "").split()
    workers = [pid for pid in session_of(process) if pid != process.pid]
    if words:
        workers += [int(pid) for pid in subprocess.run(words, capture_output=True, text=True).stdout.split()]
    if CHOOSE.random() < 0.3 or threads_alone:
        return process.pid
    return CHOOSE.choice(workers) if workers else None


def check_kills(engine, kills, expected):
    """Processes are killed at random moments; whoever goes on gives the same bytes."""
    out, done, drives, of_workers, wholes = f"killed-{engine}", 0, 0, 0, 0
    # A cluster takes a while to begin.
    longest = 8.0 if RAY_ADDRESS else 1.0
    while done < kills:
        drives += 1
        process = driver(engine, out)
        began = time.monotonic()
        while process.poll() is None and done < kills and time.monotonic() - began < 120:
            time.sleep(CHOOSE.uniform(0.05, longest))
            if process.poll() is None:
                pid = victim(process, threads_alone=engine == "threads")
                if pid is not None:
                    kill(pid)
                    of_workers += pid != process.pid
                    done += 1
        is_whole = process.poll() == 0
        end(process)
        if is_whole:
            wholes += 1
            assert table(out) == expected
            # From the start again.
            for file in (pathlib.Path(out) / "runs").iterdir():
                file.unlink()
            longest = max(longest * 0.8, 0.1)
    process = driver(engine, out)
    said, _ = process.communicate(timeout=600)
    if process.returncode:
        process = driver(engine, out)
        said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert table(out) == expected
    print(f"{engine}: {done} kills, {of_workers} of them of workers; {drives} drivers, of which {wholes} came to the end")


def check_the_lines_of_docs():
    """The experiment, the commands and the lines of docs/sweeps.md for a laptop; the others are Python at least."""
    text = (ROOT / "docs" / "sweeps.md").read_text()
    blocks = {language: re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S) for language in ("toml", "sh", "python")}
    folder = pathlib.Path("of-a-reader").absolute()
    folder.mkdir()
    (folder / "mine.toml").write_text(blocks["toml"][0])
    console = pathlib.Path(sys.executable).with_name("imbrex")
    recording = ROOT / "workloads" / "pgbench.imbrex.xz"
    subprocess.run([console, "trace", "convert", recording, "mytrace.csv.gz", "--limit", "4000"], cwd=folder, check=True,
                   capture_output=True)
    path = f"{console.parent}:{os.environ['PATH']}"
    done = subprocess.run(blocks["sh"][0], shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("62 jobs are in jobs.jsonl\n"), (done.stdout, done.stderr)
    before = os.getcwd()
    os.chdir(folder)
    seen = {}
    exec(blocks["python"][0], seen)
    os.chdir(before)
    assert seen["done"].before == 62 and seen["table"] == "results/results.parquet", seen["table"]
    for block in blocks["python"][1:-1]:
        compile(block, "docs/sweeps.md", "exec")


def check_ctrl_c(engine, expected):
    """It ends a driver soon; jobs are given back, and another one goes on."""
    out = f"stopped-{engine}"
    process = driver(engine, out)
    runs = pathlib.Path(out) / "runs"
    while not runs.exists() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode in (0, 130) and (process.returncode == 0 or "Stopped" in said or engine != "threads"), said
    assert not [claim for claim in (pathlib.Path(out) / "claims").iterdir() if claim.suffix != ".owner"], said
    process = driver(engine, out)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert table(out) == expected
    print(f"{engine}: stopped, and went on")


def check_not_installed():
    for name, extra, make in (("ray", "ray", engines.Ray), ("submitit", "slurm", lambda: engines.Submitit("x"))):
        try:
            __import__(name)
        except ImportError:
            try:
                make()
            except imbrex.Error as error:
                assert f"imbrex[{extra}]" in str(error) and error.value == name, error
            else:
                raise AssertionError(name)


def check_errors_reach_the_driver():
    text = pathlib.Path("jobs.jsonl").read_text()
    pathlib.Path("wrong.jsonl").write_text(text.replace('"seed":1', '"seed":2', 1))
    for engine in ("threads", "pool"):
        try:
            sweep.run("wrong.jsonl", "wrong", ENGINES[engine]())
        except imbrex.Error as error:
            assert "wrong.jsonl: line 1: the job is named" in str(error) and "accepted: " in str(error), error
        else:
            raise AssertionError(engine)
    pathlib.Path("wrong.jsonl").write_text(text[:100])
    try:
        sweep.run("wrong.jsonl", "wrong")
    except imbrex.Error as error:
        assert "wrong.jsonl: line 1: EOF while parsing" in str(error), error
    else:
        raise AssertionError("a cut job")


def main(kills, names):
    pathlib.Path("sweep.toml").write_text("""
name = "sweep"
title = "A sweep"
systems = ["lru", "pore", "ride"]
workload = {path = "synthetic:wdev-like", limit = 8000}
[sweep]
"cache.capacity" = [CAPACITIES]
""".replace("CAPACITIES", ", ".join(f'"{16 + at} MiB"' for at in range(JOBS // 3))))
    assert sweep.plan("sweep.toml", "jobs.jsonl")["jobs"] == JOBS
    assert sweep.run("jobs.jsonl", "alone", engines.Threads(1)).made == JOBS
    expected = table("alone")
    check_the_lines_of_docs()
    check_not_installed()
    check_errors_reach_the_driver()
    for engine in names:
        process = driver(engine, engine)
        said, _ = process.communicate(timeout=600)
        # Of a node that is lost meanwhile others make what is left.
        assert process.returncode == 0 and (f"made={JOBS}" in said or RAY_ADDRESS), said
        assert table(engine) == expected, engine
        if engine in ("threads", "pool"):
            check_ctrl_c(engine, expected)
        if kills:
            check_kills(engine, kills, expected)


if __name__ == "__main__":
    if sys.argv[1] == "drive":
        drive(*sys.argv[2:])
    else:
        main(int(sys.argv[1]), sys.argv[2:])
