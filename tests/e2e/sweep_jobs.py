#!/usr/bin/env python3
"""A sweep gives the same bytes however its jobs are made: by one process with one thread or two, by two processes in one folder, by
xargs, and after kills at random moments; they are those of `imbrex run`. No job is made twice. The names of jobs are worked out
again here, from the contract in docs/sweeps.md. Input that is wrong is told in one line."""

import csv
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

IMBREX, TMP = os.environ["IMBREX"], pathlib.Path(os.environ["IMBREX_TMP"])
SOAK = os.environ.get("IMBREX_SOAK") == "1"
ROUNDS, KILLS = (200, 50) if SOAK else (20, 10)
CHOOSE = random.Random(36)

EXPERIMENT = """
name = "sweep"
title = "A sweep of three loads"
systems = ["lru", "pore", "smr-only"]
size = "64GiB"

[[workload]]
path = "drawn.csv"
columns = "op=op:R|W,off=off,len=len"
{more}
[[workload]]
path = "synthetic:wdev-like"
limit = {requests}

[[workload]]
path = "synthetic:own.toml"
limit = {requests}

[sweep]
"cache.capacity" = ["16 MiB", "32 MiB", "64 MiB"]
"""


def imbrex(*words, status=0, folder=TMP):
    done = subprocess.run([IMBREX, *map(str, words)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done


def tally(done):
    return json.loads(done.stdout)


def start(out, *words):
    return subprocess.Popen([IMBREX, "sweep", "run", "jobs.jsonl", "--out", out, "--quiet", "--json", *words], cwd=TMP,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def table(out, jobs="jobs.jsonl"):
    """The bytes of both tables of a folder."""
    imbrex("sweep", "collect", jobs, "--out", out)
    return [(TMP / out / name).read_bytes() for name in ("results.parquet", "results.csv")]


def draw():
    lines = ["op,off,len"]
    for _ in range(2000):
        lines.append(f"{CHOOSE.choice('RWW')},{CHOOSE.randrange(1 << 20) * 4096},{CHOOSE.randint(1, 16) * 4096}")
    (TMP / "drawn.csv").write_text("\n".join(lines) + "\n")
    root = pathlib.Path(__file__).resolve().parents[2]
    shutil.copy(root / "workloads/synthetic/hm-like.toml", TMP / "own.toml")


def experiment(requests, more=""):
    (TMP / "sweep.toml").write_text(EXPERIMENT.format(requests=requests, more=more))
    imbrex("sweep", "plan", "sweep.toml", "--emit", "jobs.jsonl")
    return [json.loads(line) for line in (TMP / "jobs.jsonl").read_text().splitlines()]


def name_of(job):
    """What docs/sweeps.md says."""
    def replaced(value):
        if isinstance(value, dict):
            return {key: replaced(of) for key, of in value.items()}
        if isinstance(value, list):
            return [replaced(of) for of in value]
        for known in job["inputs"]:
            for prefix in ("", "synthetic:"):
                if value == prefix + known["path"]:
                    return f"{prefix}sha256:{known['sha256']}"
        return value

    of = {key: job[key] for key in ("schema", "program", "requests", "parameters")}
    of |= {"inputs": [known["sha256"] for known in job["inputs"]], "experiment": replaced(job["experiment"])}
    text = json.dumps(of, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def names():
    jobs = experiment(2000)
    assert len(jobs) == 21, len(jobs)
    for job in jobs:
        assert name_of(job) == job["id"], job
        for known in job["inputs"]:
            assert hashlib.sha256(pathlib.Path(known["path"]).read_bytes()).hexdigest() == known["sha256"]
    assert sorted({len(job["inputs"]) for job in jobs}) == [0, 1]
    # Whoever plans from another place has the same names.
    elsewhere = TMP / "elsewhere"
    elsewhere.mkdir()
    for name in ("drawn.csv", "own.toml", "sweep.toml"):
        shutil.copy(TMP / name, elsewhere)
    imbrex("sweep", "plan", "elsewhere/sweep.toml", "--emit", "elsewhere/jobs.jsonl")
    again = [json.loads(line) for line in (elsewhere / "jobs.jsonl").read_text().splitlines()]
    assert [job["id"] for job in again] == [job["id"] for job in jobs]
    # A seed, a setting and a limit are other jobs.
    for words in (["--seed", "2"], ["--set", "smr.drive=wd40efax"]):
        imbrex("sweep", "plan", "sweep.toml", "--emit", "other.jsonl", *words)
        other = {json.loads(line)["id"] for line in (TMP / "other.jsonl").read_text().splitlines()}
        assert len(other) == 21 and not other & {job["id"] for job in jobs}, words
    return jobs


def same_bytes(jobs):
    done = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "one", "--jobs", "1", "--quiet", "--json"))
    assert done["made"] == len(jobs) and done["failed"] == 0, done
    expected = table("one")
    # Again there is nothing to do.
    done = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "one", "--quiet", "--json"))
    assert (done["made"], done["before"]) == (0, len(jobs)), done
    imbrex("run", "sweep.toml", "--out", "ran", "--quiet")
    # Jobs have absolute paths, and a column for what went wrong.
    ran = csv.reader((TMP / "ran/results.csv").open())
    made = csv.reader((TMP / "one/results.csv").open())
    for row, of in zip(ran, made, strict=True):
        assert of[-1] in ("", "error") and of[1].replace(f"{TMP}/", "") == row[1], (row, of)
        assert [*of[:1], *of[2:-1]] == [*row[:1], *row[2:]], (row, of)
    imbrex("sweep", "run", "jobs.jsonl", "--out", "two", "--jobs", "2", "--quiet")
    assert table("two") == expected
    xargs = f"seq 0 {len(jobs) - 1} | xargs -P 3 -I{{}} {IMBREX} sweep run-job jobs.jsonl --out three --quiet --index {{}}"
    subprocess.run(xargs, shell=True, check=True, cwd=TMP)
    assert table("three") == expected
    for job in jobs[::5]:
        imbrex("sweep", "run-job", "jobs.jsonl", "--out", "four", "--quiet", "--id", job["id"][:12])
    imbrex("sweep", "run-job", "jobs.jsonl", "--out", "four", "--quiet", "--index", "0-20", "--jobs", "2")
    assert table("four") == expected
    return expected


def no_job_twice(jobs):
    """Two drivers begin at once, round after round."""
    for at in range(ROUNDS):
        drivers = [start(f"round{at}", "--jobs", str(1 + at % 2)) for _ in range(2)]
        said = [driver.communicate(timeout=120) for driver in drivers]
        assert all(driver.returncode == 0 for driver in drivers), said
        done = [json.loads(out) for out, _ in said]
        assert sum(of["made"] for of in done) == len(jobs), done
        assert all(of["made"] + of["before"] + of["by_others"] == len(jobs) for of in done), done
        assert not list((TMP / f"round{at}" / "claims").iterdir()), "claims are given back"
        if at:
            shutil.rmtree(TMP / f"round{at}")
    return table("round0")


def killed(jobs, expected):
    """Drivers are killed at random moments; others take their jobs, and the last one finishes."""
    longest = 0.1
    kills = made = 0
    while kills < KILLS:
        drivers = [start("killed"), start("killed")]
        time.sleep(CHOOSE.uniform(0, longest))
        for driver in drivers:
            kills += driver.poll() is None
            driver.kill()
            driver.communicate()
        made = len(list((TMP / "killed" / "runs").glob("*.finished"))) if (TMP / "killed" / "runs").exists() else 0
        if made == len(jobs):
            assert table("killed") == expected
            shutil.rmtree(TMP / "killed")
    done = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "killed", "--quiet", "--json"))
    assert done["made"] + done["before"] + done["by_others"] == len(jobs), done
    assert table("killed") == expected


def stopped(jobs, expected):
    """Ctrl-C gives jobs back, and says what is left."""
    driver = start("stopped", "--jobs", "1")
    while not (TMP / "stopped/runs").exists():
        time.sleep(0.001)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=60)
    done = json.loads(out)
    assert driver.returncode == (130 if done["left"] else 0), (driver.returncode, err)
    assert done["made"] + done["left"] == len(jobs), done
    assert not list((TMP / "stopped/claims").iterdir())
    imbrex("sweep", "run", "jobs.jsonl", "--out", "stopped", "--quiet")
    assert table("stopped") == expected


def failures(jobs):
    """A job that fails is a row with its message."""
    drawn = (TMP / "drawn.csv").read_text()
    (TMP / "drawn.csv").write_text(drawn + f"W,{1 << 40},4096\n")
    beyond = experiment(2000)
    done = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "failed", "--quiet", "--json"))
    assert (done["made"], done["failed"]) == (21, 7), done
    said = imbrex("sweep", "collect", "jobs.jsonl", "--out", "failed").stdout
    assert "7 failed:\n" in said and "ends beyond the device" in said, said
    rows = list(csv.DictReader((TMP / "failed/results.csv").open()))
    assert [bool(row["error"]) for row in rows] == [job["workload"].endswith("drawn.csv") for job in beyond]
    for row in rows:
        assert bool(row["requests"]) != bool(row["error"]), row
    assert "record 2001: write of 4096 bytes" in rows[0]["error"], rows[0]["error"]
    again = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "failed", "--quiet", "--json"))
    assert (again["made"], again["before"]) == (0, 21), again
    again = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "failed", "--quiet", "--json", "--retry-failed"))
    assert (again["made"], again["failed"]) == (7, 7), again
    # The jobs of the plan are of the trace as it was.
    (TMP / "drawn.csv").write_text(drawn)
    said = imbrex("sweep", "run", "jobs.jsonl", "--out", "changed", status=1).stderr
    assert "drawn.csv: the file has changed since the sweep was planned: its SHA-256 is " in said, said
    (TMP / "drawn.csv").unlink()
    said = imbrex("sweep", "run", "jobs.jsonl", "--out", "changed", status=1).stderr
    assert "drawn.csv" in said and "No such file" in said, said
    (TMP / "drawn.csv").write_text(drawn)
    assert experiment(2000) == jobs


def damaged(jobs, expected):
    """What is not in order is named by `collect` and made again by `run`."""
    shutil.copytree(TMP / "one", TMP / "damaged")
    cut, flipped, gone = [TMP / "damaged/runs" / f"{job['id']}.finished" for job in jobs[3:6]]
    cut.write_bytes(cut.read_bytes()[:-100])
    text = bytearray(flipped.read_bytes())
    text[len(text) // 2] ^= 1
    flipped.write_bytes(text)
    gone.unlink()
    said = imbrex("sweep", "collect", "jobs.jsonl", "--out", "damaged", status=1).stderr
    assert "3 not made" in said and "2 not in order" in said and str(cut.name) in said and "--partial" in said, said
    assert "18 rows" in imbrex("sweep", "collect", "jobs.jsonl", "--out", "damaged", "--partial").stdout
    done = tally(imbrex("sweep", "run", "jobs.jsonl", "--out", "damaged", "--quiet", "--json"))
    assert done["made"] == 3, done
    assert table("damaged") == expected


def full_disk(jobs):
    """A disk that is full ends the work; what there is stays, and `collect` names what is not made."""
    disk = TMP / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        print(f"the full disk was left out: {mounted.stderr.decode().strip()}")
        return None
    try:
        said = imbrex("sweep", "run", "jobs.jsonl", "--out", "disk", "--quiet", status=1).stderr
        assert "No space left on device" in said and len(said.splitlines()) == 1, said
        said = imbrex("sweep", "collect", "jobs.jsonl", "--out", "disk", status=1).stderr
        assert " not made:" in said or "No space left" in said, said
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        imbrex("sweep", "run", "jobs.jsonl", "--out", "disk", "--quiet")
        return table("disk")
    finally:
        subprocess.run(["umount", disk], check=True)


def pages(jobs):
    """Runs of one trace that is replayed in two ways stand apart on the page; depths that are swept stand together."""
    text = """name = "pages"
title = "Pages"
systems = ["lru", "pore", "smr-only"]
workload = [{path = "drawn.csv", columns = "op=op:R|W,off=off,len=len", name = "once"},
            {path = "drawn.csv", columns = "op=op:R|W,off=off,len=len", name = "twice", repeat = 2}]
[sweep]
"workload.queue_depth" = [1, 4]
"""
    (TMP / "pages.toml").write_text(text)
    imbrex("sweep", "plan", "pages.toml", "--emit", "pages.jsonl")
    imbrex("sweep", "run", "pages.jsonl", "--out", "pages", "--quiet", "--page", "live.html")
    imbrex("sweep", "collect", "pages.jsonl", "--out", "pages")
    page = (TMP / "pages/sweep.html").read_text()
    assert page.count("workload, 6 runs.</p>") == 2, page[:3000]
    live = (TMP / "live.html").read_text()
    assert "12 of 12 jobs made" in live and "http-equiv=\"refresh\"" not in live
    said = imbrex("sweep", "collect", "jobs.jsonl", "--out", "nowhere", status=1).stderr
    assert "nowhere: there is no such folder; accepted: " in said and not (TMP / "nowhere").exists(), said
    # A page that is written while the work fails does not go on loading itself.
    lines = [job for job in jobs if job["workload"].endswith("drawn.csv")]
    lines[0]["inputs"][0]["sha256"] = "0" * 64
    lines[0]["id"] = name_of(lines[0])
    (TMP / "changed.jsonl").write_text("".join(json.dumps(job) + "\n" for job in lines))
    imbrex("sweep", "run", "changed.jsonl", "--out", "changed", "--quiet", "--page", "live.html", status=1)
    assert "http-equiv=\"refresh\"" not in (TMP / "live.html").read_text()


def wrong():
    lines = (TMP / "jobs.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    def job(text, expected, status=1, words=("sweep", "run")):
        (TMP / "wrong.jsonl").write_text(text)
        said = imbrex(*words, "wrong.jsonl", "--out", "wrong", status=status).stderr
        assert expected in said and "accepted: " in said and len(said.splitlines()) == 1, said

    other = lines[0].replace(f'"program":"{first["program"]}"', '"program":"9.9.9 abc"')
    job(other, f"wrong.jsonl: line 1: the job is of imbrex 9.9.9 abc, and this is {first['program']}")
    job(lines[0] + "\n" + lines[1].replace('"seed":1', '"seed":2'), "wrong.jsonl: line 2: the job is named ")
    job(lines[0][:100], "wrong.jsonl: line 1: EOF while parsing")
    job("\n" + lines[0].replace("job/1", "job/2"), "wrong.jsonl: line 2: schema `imbrex.job/2` is not imbrex.job/1")
    job(lines[0], "--index 1: wrong.jsonl has 1 jobs", 2, ("sweep", "run-job", "--index", "1"))
    job(lines[0], "--index 3-1: ", 2, ("sweep", "run-job", "--index", "3-1"))
    job(lines[0], "--id f00d: 0 jobs of wrong.jsonl", 2, ("sweep", "run-job", "--id", "f00d"))
    (TMP / "mine").mkdir()
    (TMP / "mine/sweep.json").write_text('{"schema":"imbrex.sweep/1","program":"9.9.9 abc"}')
    said = imbrex("sweep", "run", "jobs.jsonl", "--out", "mine", status=1).stderr
    assert "mine: the folder is of imbrex 9.9.9 abc" in said and "accepted: " in said, said
    (TMP / "mine/sweep.json").write_text('{"schema":')
    said = imbrex("sweep", "run", "jobs.jsonl", "--out", "mine", status=1).stderr
    assert "sweep.json is not in order" in said, said
    (TMP / "x.toml").write_text('name = "x"\ntitle = "x"\nsystems = ["lru"]\nworkload = {path = "-"}\n')
    said = imbrex("sweep", "plan", "x.toml", "--emit", "x.jsonl", status=1).stderr
    assert "standard input can be read once; accepted: " in said and not (TMP / "x.jsonl").exists(), said
    analysis = 'name = "x"\ntitle = "x"\nanalysis = {kind = "characteristics"}\nworkload = {path = "drawn.csv"}\n'
    (TMP / "x.toml").write_text(analysis)
    said = imbrex("sweep", "plan", "x.toml", "--emit", "x.jsonl", status=1).stderr
    assert "runs no stack" in said and "accepted: " in said, said
    said = imbrex("sweep", "plan", "sweep.toml", "--emit", ".", status=1).stderr
    assert "it is a folder" in said, said


draw()
jobs = names()
expected = same_bytes(jobs)
assert no_job_twice(jobs) == expected
killed(jobs, expected)
stopped(jobs, expected)
damaged(jobs, expected)
assert full_disk(jobs) in (None, expected)
failures(jobs)
pages(json.loads(json.dumps(jobs)))
wrong()
