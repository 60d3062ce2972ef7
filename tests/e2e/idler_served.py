#!/usr/bin/env python3
"""A controller over a durable translation and over a drive that cleans by itself, on files. fio writes and verifies while the
controller holds requests back, is switched off and on again; the server is killed once and the image is whole. A flush that
comes while requests are held ends the hold, or waits with them, as the stack says."""

import random
import subprocess
import threading
import time

from _idler import check, command, stack, status, told, wait_until
from _kill import Killable
from _load import BLOCK, Load
from _load import check as check_contents
from _nbd import FLUSH, WRITE, Pipeline
from _serving import IMBREX, SCRATCH, need

need("fio")
SIZE = 32 << 20
# On files requests are quick and come quickly, so the controller holds where the media cache is fuller than `u_high`.
KEYS = {"policy": "idler", "u_low": 0.01, "u_high": 0.02, "l_min_s": 0.05, "l_max_s": 0.2, "report_zones_every_s": 0.5,
        "media_cache": "4 MiB", "trigger_s": 0.02, "zone_clean_s": 0.02}
FILE = {"name": "disk", "kind": "disk", "drive": "st5000as0011"}
TRANSLATION = {"name": "translation", "kind": "persistent-cache", "below": "disk", "bands": "fixed:1MiB",
               "persistent_cache": "4MiB", "idle_after": "10 ms"}
OVER = {
    "durable": [FILE, TRANSLATION],
    "drive-managed": [{**FILE, "translation": "drive-managed"}],
}
FIO = ["fio", "--name=verify", "--ioengine=nbd", "--rw=randwrite", "--bsrange=4k-64k", "--size=12M", "--iodepth=8",
       "--fsync=64", "--rate=,2m", "--verify=crc32c", "--verify_fatal=1", "--randseed=1"]
# AT-IC with on_flush: what a flush does must show well inside an idle period.
WORK_S, IDLE_S = 0.5, 2.0


def create(path):
    data = SCRATCH / f"data-{len(list(SCRATCH.glob('data-*')))}"
    subprocess.run([IMBREX, "create", path, "--data", data, "--size", f"{SIZE // BLOCK * 4}KiB"], check=True, stdout=subprocess.DEVNULL)
    return data


def is_held(now):
    return now["held"] > 0 and now["phase"] in ("draining", "idle")


def switched_under_load(name, path):
    """fio goes through a controller that is on, off and on."""
    data = create(path)
    with Killable(path, data) as server:
        begun = status(server)
        assert begun["policy"] == "idler" and begun["is_on"] and begun["phase"] == "execution", begun
        assert begun["idle_s"] is None and begun["used"] == 0, begun
        fio = subprocess.Popen([*FIO, f"--uri={server.uri}"], cwd=SCRATCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        held = wait_until(server, "a request is held", is_held)
        assert held["used"] > 0 and held["idle_s"] >= KEYS["l_min_s"] and held["facts"]["decisions"] > 0, held
        told(server, "controller", "off")
        off = status(server)
        assert not off["is_on"] and off["phase"] == "execution" and off["held"] == 0, off
        text = told(server, "controller", "status")
        assert "\n  controller: idler, off\n" in text and "\n  phase: execution, 0 requests held\n" in text, text
        told(server, "controller", "off")
        time.sleep(1)
        later = status(server)
        for counter in ("idles", "decisions", "held_requests"):
            assert later["facts"][counter] == off["facts"][counter], f"{counter} while it was off: {off} and {later}"
        assert later["phase"] == "execution" and later["held"] == 0, later
        told(server, "controller", "on")
        again = wait_until(server, "a request is held again", is_held)
        assert again["is_on"] and again["facts"]["idles"] >= off["facts"]["idles"], again
        wait_until(server, "a further idle period", lambda now: now["facts"]["idles"] > off["facts"]["idles"])
        told(server, "controller", "off")
        said, _ = fio.communicate(timeout=120)
        assert fio.returncode == 0, f"fio: {said}"
        refused = command(server, "disk", "off")
        assert refused.returncode == 1 and "accepted by `off`: controller" in refused.stderr, refused.stderr
    # A start begins with a controller that is on.
    with Killable(path, data) as server:
        assert status(server)["is_on"]
    check(data)
    counts = server.run_report()["nodes"]["controller"]
    assert counts["idles"] == 0, f"nobody asked for anything: {counts}"
    print(f"{name}: held with {held['used']:.2f} of the media cache in use and L = {held['idle_s']} s; "
          f"{again['facts']['idles']} idle periods; off, on and off while fio wrote")


def killed_while_holding(name, path):
    """The server dies while requests are held. Whatever was answered is there."""
    data = create(path)
    versions = [0] * (SIZE // BLOCK)
    with Killable(path, data) as server:
        load, left = Load(versions, 1 << 32, random.Random(3)), {}
        worker = threading.Thread(target=lambda: left.update(load.run(server.socket)))
        worker.start()
        wait_until(server, "requests are held and some were answered", lambda now: is_held(now) and load.answered > 100)
        server.kill()
        worker.join()
        assert left, "no request was in flight"
    check(data)
    with Killable(path, data) as server:
        told(server, "controller", "off")
        check_contents(server, versions, left)
    check(data)
    print(f"{name}: killed while it held requests; {load.answered} were answered, {len(left)} blocks were in flight")


def a_flush_in_a_hold(on_flush):
    """Two writes are held, and a flush comes. Answers how long the flush took, and how long the idle period had still to go."""
    path = stack(f"flush-{on_flush}", OVER["durable"], policy="at-ic", at_ic=[WORK_S, IDLE_S], on_flush=on_flush)
    with Killable(path, create(path)) as server:
        client = Pipeline(server.socket)
        seen = wait_until(server, "it works", lambda now: now["phase"] == "execution")
        assert seen["policy"] == "at-ic" and seen["used"] is None and seen["idle_s"] == IDLE_S, seen
        wait_until(server, "an idle period", lambda now: now["phase"] == "idle")
        idle_since = time.monotonic()
        for block in range(2):
            client.send(f"write {block}", WRITE, block * BLOCK, BLOCK, bytes([7]) * BLOCK)
        assert wait_until(server, "both writes are held", lambda now: now["held"] == 2)["phase"] == "idle"
        sent = time.monotonic()
        client.send("flush", FLUSH)
        if on_flush == "hold":
            assert wait_until(server, "the flush is held", lambda now: now["held"] == 3)["phase"] == "idle"
        answered = {client.answer()[0]: time.monotonic() for _ in range(3)}
        assert answered["flush"] == max(answered.values()), "a write that came before the flush is answered after it"
        took_s, left_s = answered["flush"] - sent, idle_since + IDLE_S - sent
        client.close()
    return took_s, left_s


def main():
    for name, nodes in OVER.items():
        path = stack(f"idler-{name}", nodes, **KEYS)
        switched_under_load(name, path)
        killed_while_holding(name, path)
    took_s, left_s = a_flush_in_a_hold("hold")
    assert left_s - 0.3 < took_s < left_s + 0.7, f"a held flush took {took_s:.2f} s with {left_s:.2f} s to go"
    print(f"on_flush = hold: a flush took {took_s:.2f} s, {left_s:.2f} s before the end of the idle period")
    took_s, left_s = a_flush_in_a_hold("end-idle")
    assert left_s > 1 and took_s < left_s / 2, f"a flush that ends the hold took {took_s:.2f} s with {left_s:.2f} s to go"
    print(f"on_flush = end-idle: a flush took {took_s:.3f} s, {left_s:.2f} s before the end of the idle period")


main()
