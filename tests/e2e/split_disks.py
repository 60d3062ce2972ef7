#!/usr/bin/env python3
"""Volumes whose logs lie on other disks, under schedulers, are served: all are written, the server is killed and started
again, and nothing that was flushed is lost. Then a disk fails: the volumes that have their log or their home there fail, two
of `split`, one of `split-local`, one or all of `split-dedicated`, and the others go on."""

import errno
import random
import subprocess

from _kill import Killable
from _nbd import Client
from _serving import IMBREX, SCRATCH

BLOCK = 4096
DISKS = 4
# Volumes that each disk takes with it, by placement.
LOST = {
    "split": lambda disk: {disk, (disk - 1) % DISKS},
    "split-local": lambda disk: {disk},
    "split-dedicated": lambda disk: set(range(DISKS)) if disk == DISKS - 1 else {disk},
}
LOG_ON = {
    "split": lambda volume: (volume + 1) % DISKS,
    "split-local": lambda volume: volume,
    "split-dedicated": lambda _: DISKS - 1,
}
LOG_MIB = 96


def stack_file(name):
    text = [f'name = "{name}"']

    def node(**keys):
        words = (f"{key} = {value if str(value).startswith('{') or isinstance(value, list) else repr(value)}"
                 for key, value in keys.items())
        text.append("[[node]]\n" + "\n".join(words).replace("'", '"'))

    for disk in range(DISKS):
        node(name=f"disk-{disk}", kind="disk", drive="st5000as0011")
        node(name=f"queue-{disk}", kind="scheduler", below=f"disk-{disk}", policy="area-c-look", quota=8)
        logs = [volume for volume in range(DISKS) if LOG_ON[name](volume) == disk]
        for place, volume in enumerate(logs):
            node(name=f"log-{volume}", kind="slice", below=f"queue-{disk}", offset=f"{LOG_MIB * place}MiB", size=f"{LOG_MIB}MiB")
        node(name=f"home-{disk}", kind="slice", below=f"queue-{disk}", offset=f"{LOG_MIB * len(logs)}MiB", size="512MiB")
    for volume in range(DISKS):
        below = f'{{ log = "log-{volume}", home = "home-{volume}" }}'
        node(name=f"volume-{volume}", kind="persistent-cache", below=below, bands="fixed:16MiB",
             persistent_cache="16MiB", merge_buffer="none", bypass="on", bypass_streams=32)
    node(name="volumes", kind="span", below=[f"volume-{volume}" for volume in range(DISKS)])
    path = SCRATCH / f"{name}.toml"
    path.write_text("\n".join(text) + "\n")
    return path


def works(client, offset, data):
    """True when a write is taken and flushed; False when it ends with EIO."""
    try:
        client.write(offset, data)
        client.flush()
    except OSError as error:
        assert error.errno == errno.EIO, error
        return False
    return True


def check(data, *options):
    done = subprocess.run([IMBREX, "check", data, *options], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "clean", done.stdout + done.stderr


def main():
    for name in LOST:
        rng, known = random.Random(5), [{} for _ in range(DISKS)]
        stack, data = stack_file(name), SCRATCH / f"data-{name}"
        subprocess.run([IMBREX, "create", stack, "--data", data], check=True, stdout=subprocess.DEVNULL)
        for number in range(2):
            with Killable(stack, data) as server:
                clients = [Client(server.socket, export=f"volume-{volume}") for volume in range(DISKS)]
                for volume, client in enumerate(clients):
                    for block, content in known[volume].items():
                        assert client.read(block * BLOCK, BLOCK) == content, f"{name}: volume {volume}, block {block}"
                for _ in range(1500):
                    volume, blocks = rng.randrange(DISKS), rng.randint(1, 16)
                    first = rng.randrange((32 << 20) // BLOCK - blocks)
                    content = rng.randbytes(blocks * BLOCK)
                    clients[volume].write(first * BLOCK, content)
                    for block in range(blocks):
                        known[volume][first + block] = content[block * BLOCK:(block + 1) * BLOCK]
                for client in clients:
                    client.flush()
                if number == 0:
                    server.kill()
                else:
                    for client in clients:
                        client.close()
        check(data)
        check(data, "--data")
        for disk in (0, DISKS - 1):
            with Killable(stack, data, "--allow-faults") as server:
                clients = [Client(server.socket, export=f"volume-{volume}") for volume in range(DISKS)]
                failed = subprocess.run([IMBREX, "control", f"{server.socket}.control", f"disk-{disk}", "fail", "--force"],
                                        capture_output=True, text=True)
                assert failed.returncode == 0, failed.stderr
                lost = {volume for volume, client in enumerate(clients) if not works(client, 0, rng.randbytes(BLOCK))}
                assert lost == LOST[name](disk), f"{name}, disk {disk}: {lost}"
                for volume in set(range(DISKS)) - lost:
                    for block, content in known[volume].items():
                        if block > 0:
                            assert clients[volume].read(block * BLOCK, BLOCK) == content, f"{name}: volume {volume}, block {block}"
                server.kill()
            print(f"{name}: disk {disk} takes {len(lost)} volumes with it")
        print(f"{name}: {sum(map(len, known))} blocks as they were written")


main()
