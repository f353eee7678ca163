"""Two ends of ours and what is between them, each in a network namespace of its own."""

import json
import os
import signal
import subprocess
import time

import guest as guests
from image import Unable, output


class Namespace:
    """A network namespace that lives as long as the process that holds it."""

    def __init__(self):
        self.holder = subprocess.Popen([*guests.DIE_WITH_US, "unshare", "--net", "sleep", "infinity"])
        self.path = f"/proc/{self.holder.pid}/ns/net"
        until = time.monotonic() + 5
        while os.readlink(self.path) == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > until:
                raise Unable("the network namespace does not come up")
            time.sleep(0.01)

    def command(self, *words):
        return [*guests.DIE_WITH_US, "nsenter", f"--net={self.path}", *map(str, words)]

    def run(self, *words, **options):
        return output(self.command(*words), **options)

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def close(self):
        guests.stop(self.holder)

    def await_listener(self, server, port):
        """Waits until the process `server` takes connections there."""
        until = time.monotonic() + 20
        while f":{port}" not in self.run("ss", "-ltn"):
            if server.poll() is not None or time.monotonic() > until:
                raise Unable(f"a server does not start: {server.communicate()[1]}")
            time.sleep(0.05)


def switched(middle, roci, ports, options):
    """Connects namespaces by a switch of ours in `middle`, whose process it gives. `ports` have by the names of their devices a namespace,
    its address and the rate of its link."""
    named = [f"tap:{device}@{rate}" for device, (_, _, rate) in ports.items()]
    switch = middle.start(roci, "switch", *named, "--json", *options)
    until = time.monotonic() + 20
    for device, (end, address, _) in ports.items():
        while subprocess.run(middle.command("ip", "link", "show", device), capture_output=True).returncode != 0:
            if switch.poll() is not None or time.monotonic() > until:
                raise Unable(f"the switch does not start: {switch.communicate()[1]}")
            time.sleep(0.05)
        middle.run("ip", "link", "set", device, "netns", end.holder.pid)
        end.run("ip", "address", "add", f"{address}/24", "dev", device)
        end.run("ip", "link", "set", "lo", "up")
        end.run("ip", "link", "set", device, "up")
    return switch


def told_by(switch, port):
    """What it counted of a port, once it has ended."""
    switch.send_signal(signal.SIGINT)
    told, wrong = switch.communicate(timeout=20)
    if switch.returncode != 0:
        raise Unable(f"roci switch ended with {switch.returncode}: {wrong.strip()}")
    return next(told for told in json.loads(told)["ports"] if told["name"] == port)


def ended(process, seconds):
    """Waits for the end of a `roci perf`, which is to be a good one, and gives what it printed."""
    return ended_with(process, seconds)[0]


def ended_with(process, seconds):
    """The same, with what it said on stderr."""
    told, said = process.communicate(timeout=seconds)
    if process.returncode != 0:
        raise Unable(f"roci perf ended with {process.returncode}: {said.strip()}")
    return told, said
