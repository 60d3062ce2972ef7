"""A Ray cluster of two nodes, each in a network of its own, for as long as it is asked for."""

import contextlib
import os
import subprocess

ADDRESS = "10.83.0.1:6399"


def _run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def _inside(network, *words):
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_DISABLE_IMPORT_WARNING": "1"}
    words = ["ip", "netns", "exec", network, *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {(done.stderr or done.stdout).strip()[-2000:]}")


class Cluster:
    """Two networks with a node in each. The second one can be lost and come back."""

    def __init__(self, ray, folder):
        self.ray, self.folder = ray, folder
        self.networks = ("imbrex-ray-a", "imbrex-ray-b")

    def begin(self):
        """Makes the networks and starts the nodes.

        Raises:
            OSError: This machine does not allow networks.
        """
        for network in self.networks:
            subprocess.run(["ip", "netns", "del", network], capture_output=True)
            _run("ip", "netns", "add", network)
        _run("ip", "link", "add", "imbrex-a", "netns", self.networks[0], "type", "veth", "peer", "name", "imbrex-b", "netns",
             self.networks[1])
        for at, network in enumerate(self.networks):
            device = f"imbrex-{'ab'[at]}"
            _run("ip", "-n", network, "addr", "add", f"10.83.0.{at + 1}/24", "dev", device)
            _run("ip", "-n", network, "link", "set", device, "up")
            _run("ip", "-n", network, "link", "set", "lo", "up")
        _inside(self.networks[0], self.ray, "start", "--head", "--node-ip-address=10.83.0.1", f"--port={ADDRESS.split(':')[1]}",
                "--num-cpus=1", "--include-dashboard=false", f"--temp-dir={self.folder}/a", "--object-store-memory=100000000")
        self.start_second()

    def start_second(self):
        _inside(self.networks[1], self.ray, "start", f"--address={ADDRESS}", "--node-ip-address=10.83.0.2", "--num-cpus=1",
                f"--temp-dir={self.folder}/b", "--object-store-memory=100000000")

    def lose_second(self):
        """The node and all that runs on it die at once."""
        for pid in self.processes(1):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)

    def processes(self, node):
        return [int(pid) for pid in _run("ip", "netns", "pids", self.networks[node]).split()]

    def end(self):
        for node, network in enumerate(self.networks):
            with contextlib.suppress(OSError):
                for pid in self.processes(node):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, 9)
            subprocess.run(["ip", "netns", "del", network], capture_output=True)
