"""Machines of a test: network namespaces with a bridge between them, which can be cut off from it. Where the system has
no namespaces to give, each machine is an address of the loopback device, and what is cut off is stopped."""

import os
import signal
import subprocess

PREFIX = "imbrex"
PORT = 10809


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Hosts:
    """Machines with numbers from 0 on, as a context manager. Number 0 serves, the others hold disks."""

    def __init__(self, count):
        self.count = count
        self.tag = f"{PREFIX}{os.getpid() % 100000}"
        self.has_network = False
        self.processes = {}

    def __enter__(self):
        try:
            self._build()
            self.has_network = True
        except (OSError, subprocess.CalledProcessError) as error:
            self._remove()
            print(f"without network namespaces, machines are loopback addresses: {error}")
        return self

    def __exit__(self, *_):
        for process in [it for started in self.processes.values() for it in started]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self._remove()

    def _build(self):
        run("ip", "netns", "add", self._space("hub"))
        hub = ["ip", "netns", "exec", self._space("hub"), "ip"]
        run(*hub, "link", "add", "hub", "type", "bridge")
        run(*hub, "link", "set", "hub", "up")
        for host in range(self.count):
            space = self._space(host)
            run("ip", "netns", "add", space)
            run("ip", "link", "add", f"h{host}", "netns", self._space("hub"), "type", "veth", "peer", "name", "eth0",
                "netns", space)
            run(*hub, "link", "set", f"h{host}", "master", "hub")
            run(*hub, "link", "set", f"h{host}", "up")
            inside = ["ip", "netns", "exec", space, "ip"]
            run(*inside, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")

    def _remove(self):
        for name in ["hub", *range(self.count)]:
            run("ip", "netns", "delete", self._space(name), check=False)

    def _space(self, host):
        return f"{self.tag}-{host}"

    def address(self, host):
        return f"10.77.0.{host + 1}" if self.has_network or not self.processes else f"127.77.0.{host + 1}"

    def uri(self, host, export):
        return f"nbd://{self.address(host)}:{PORT}/{export}"

    def command(self, host, *words):
        """A command line that runs on a machine."""
        return ["ip", "netns", "exec", self._space(host), *words] if self.has_network else list(words)

    def start(self, host, *words, **options):
        """Starts a program on a machine; it is killed in the end."""
        process = subprocess.Popen(self.command(host, *words), **options)
        self.processes.setdefault(host, []).append(process)
        return process

    def forget(self, host, process):
        self.processes[host].remove(process)

    def cut_off(self, host):
        """Nothing that is sent to or from the machine arrives."""
        self._link(host, "down", signal.SIGSTOP)

    def join(self, host):
        self._link(host, "up", signal.SIGCONT)

    def _link(self, host, state, otherwise):
        if self.has_network:
            run("ip", "netns", "exec", self._space("hub"), "ip", "link", "set", f"h{host}", state)
            return
        for process in self.processes.get(host, []):
            process.send_signal(otherwise)
