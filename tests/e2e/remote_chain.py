#!/usr/bin/env python3
"""Three parity arrays that share a data disk, whose disks all are at other machines: no machine holds two members of one
array, and the shared disk is at one of its own. A machine is cut off and service goes on; it comes back, and gets what it
has missed; then nbdkit serves its disks, and dies under load."""
# Alone: it waits for disks that do not answer, and a machine that is busy answers late too.

import random
import signal
import subprocess
import time

from _array import Array, check_image, written
from _hosts import PORT, Hosts
from _nbd import Client
from _serving import IMBREX, SCRATCH, create, need

need("ip", "nbdkit")
BLOCK = 4096
ARRAYS = 3
MEMBERS = ["home-0", "home-1", "home-2", "parity"]
HOSTS = 2 + len(MEMBERS)
SHARED_HOST = 1
MEMBER_BYTES = 2600 << 20
SLICE_BYTES = 48 << 20
SIZE = 36 << 20
CHUNK = 1 << 20
KILLS = 5
START_S = 30


def host_stack(host, names, size):
    """A stack of files that a machine offers by their names, which lie in a folder. Answers it."""
    folder = SCRATCH / f"disks-{host}"
    folder.mkdir()
    text = f'name = "host-{host}"\n'
    for name in names:
        text += f'\n[[node]]\nname = "{name}"\nkind = "disk"\ndrive = "wd-4tb-7200"\n'
        text += f'backing = "{folder / name}"\n'
        with open(folder / name, "wb") as file:
            file.truncate(size)
    text += f'\n[[node]]\nname = "all"\nkind = "span"\nbelow = [{", ".join(repr(name) for name in names)}]\n'
    written(f"host-{host}", text.replace("'", '"'))
    return folder


def chain_stack(hosts):
    text = 'name = "chain"\nsize = "36 MiB"\n'

    def disk(name, drive, host, export):
        return (f'\n[[node]]\nname = "{name}"\nkind = "disk"\ndrive = "{drive}"\nreconnect_s = 20\n'
                f'backing = "{hosts.uri(host, export)}"\n')

    text += disk("shared", "wd-4tb-7200", SHARED_HOST, "shared")
    for array in range(ARRAYS):
        for place, member in enumerate(MEMBERS):
            drive = "wd-4tb-7200" if member == "parity" else "st5000as0011"
            text += disk(f"{member}-of-{array}", drive, 2 + place, f"disk-{array}")
        text += f'\n[[node]]\nname = "data-{array}"\nkind = "slice"\nbelow = "shared"\n'
        text += f'offset = "{array * SLICE_BYTES >> 20} MiB"\nsize = "{SLICE_BYTES >> 20} MiB"\n'
        homes = ", ".join(f'"home-{home}-of-{array}"' for home in range(3))
        text += f'\n[[node]]\nname = "array-{array}"\nkind = "raid4smr"\n'
        text += f'below = {{ homes = [{homes}], data = "data-{array}", parity = "parity-of-{array}" }}\n'
        text += 'bands = "disk"\ntrack_blocks = 20\nband_tracks = 10\nlost_after_s = 4\n'
    text += f'\n[[node]]\nname = "chain"\nkind = "stripe"\nchunk = "64 KiB"\nbelow = ["array-0", "array-1", "array-2"]\n'
    return written("chain", text.replace('name = "chain"\nkind', 'name = "top"\nkind'))


class Remote(Array):
    """The arrays, served on machine 0."""

    def __init__(self, hosts, data):
        super().__init__(SCRATCH / "chain.toml", data)
        self.command = hosts.command(0, *map(str, self.command))


def serve_disks(hosts, host, data):
    """A machine's own server of its disks."""
    place = f"{hosts.address(host)}:{PORT}"
    said = open(SCRATCH / f"host-{host}.said", "ab")
    process = hosts.start(host, IMBREX, "serve", str(SCRATCH / f"host-{host}.toml"), "--data", str(data), "--listen", place,
                          "--trust-network", "--report", str(SCRATCH / f"host-{host}.json"), stderr=said)
    deadline = time.monotonic() + START_S
    while b"imbrex: serving" not in (SCRATCH / f"host-{host}.said").read_bytes():
        assert process.poll() is None and time.monotonic() < deadline, (SCRATCH / f"host-{host}.said").read_text()
        time.sleep(0.02)
    return process


def serve_by_nbdkit(hosts, host, folder):
    """The same disks, served by another program from the same files."""
    return hosts.start(host, "nbdkit", "--foreground", "--ipaddr", hosts.address(host), "--port", str(PORT), "file",
                       f"dir={folder}", stderr=subprocess.DEVNULL)


class Load:
    """Writes here and there, and knows what it has written."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.known = bytearray(SIZE)

    def work(self, server, requests):
        client = Client(server.socket)
        for number in range(requests):
            within = SIZE if self.rng.random() < 0.5 else 2 << 20
            length = BLOCK * self.rng.randint(1, 8)
            offset = BLOCK * self.rng.randrange((within - length) // BLOCK)
            data = self.rng.randbytes(length)
            client.write(offset, data, fua=number % 5 == 0)
            self.known[offset:offset + length] = data
        client.flush()
        client.close()

    def check(self, server, when):
        client = Client(server.socket)
        for offset in range(0, SIZE, CHUNK):
            assert client.read(offset, CHUNK) == self.known[offset:offset + CHUNK], f"{when}: at {offset}"
        client.close()


def arrays(server, expected):
    for array in range(ARRAYS):
        said = server.control(f"array-{array}", "status")
        assert f"array: {expected}" in said, said


def main():
    with Hosts(HOSTS) as hosts:
        exports = {SHARED_HOST: ["shared"], **{host: [f"disk-{array}" for array in range(ARRAYS)]
                                               for host in range(2, HOSTS)}}
        folders, servers = {}, {}
        for host, names in exports.items():
            size = ARRAYS * SLICE_BYTES + (1 << 20) if host == SHARED_HOST else MEMBER_BYTES
            folders[host] = host_stack(host, names, size)
            servers[host] = serve_disks(hosts, host, create(SCRATCH / f"host-{host}.toml", None))
        chain_stack(hosts)
        data = SCRATCH / "chain-data"
        command = hosts.command(0, IMBREX, "create", str(SCRATCH / "chain.toml"), "--data", str(data))
        subprocess.run(command, check=True)
        load = Load(1)

        server = Remote(hosts, data)
        with server:
            load.work(server, 400)
            arrays(server, "whole")
            hosts.cut_off(3)
            began = time.monotonic()
            load.work(server, 300)
            stalled_s = time.monotonic() - began
            arrays(server, "degraded")
            load.check(server, "a machine is cut off")
            server.kill()
        hosts.join(3)
        server = Remote(hosts, data)
        with server:
            for array in range(ARRAYS):
                server.wait_until_whole(f"array-{array}")
            load.check(server, "the machine is back")
            load.work(server, 150)

            # Its server ends in order, and another program serves the same files; nobody above is told.
            process = servers[3]
            process.send_signal(signal.SIGTERM)
            process.wait()
            hosts.forget(3, process)
            kit = serve_by_nbdkit(hosts, 3, folders[3])
            load.work(server, 300)
            arrays(server, "whole")
            for _ in range(KILLS):
                kit.send_signal(signal.SIGKILL)
                kit.wait()
                hosts.forget(3, kit)
                kit = serve_by_nbdkit(hosts, 3, folders[3])
                load.work(server, 60)
            arrays(server, "whole")
            again = server.said().count("it is there again")
            assert again >= ARRAYS * (1 + KILLS), server.said()
            load.check(server, "another program serves the disks of a machine")
        with_network = "in namespaces" if hosts.has_network else "on loopback addresses"
        if hosts.has_network is False:
            check_image(data)
        else:
            subprocess.run(hosts.command(0, IMBREX, "check", str(data), "--data"), check=True, stdout=subprocess.DEVNULL)
        print(f"{HOSTS - 1} machines {with_network}: one cut off cost {stalled_s:.1f} s, {again} connections came again; "
              f"{SIZE // BLOCK} blocks are as they were written")


main()
