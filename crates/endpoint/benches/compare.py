#!/usr/bin/env python3
"""`roci perf` beside iperf3, UCX and libfabric: one path, interleaved rounds, medians in one table.

Two network namespaces with a veth pair between them; a process in each, on a core of its own where there are two. Run as
root on Debian, which has the others' packages:

    cargo build --release -p roci-cli && sudo crates/endpoint/benches/compare.py

What is missing is installed. Debian packages of libfabric's own tools `fi_pingpong` alone, which sends one message to and
fro: its bandwidth is that of a message at a time, and so stands beside `roci perf write-lat`, where a message goes one
way at a time too. `rivals/fabric_bw.c` keeps many outstanding, as its fi_rdm_bw would. Nothing is left behind.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
SPACES = (f"roci-cmp-{os.getpid()}-a", f"roci-cmp-{os.getpid()}-b")
ADDRESSES = ("10.79.0.1", "10.79.0.2")
PACKAGES = {"iperf3": "iperf3", "ucx_perftest": "ucx-utils", "fi_pingpong": "libfabric-bin", "ip": "iproute2",
            "cc": "gcc"}


def sh(*words, check=True):
    return subprocess.run(words, check=check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def install():
    missing = [package for command, package in PACKAGES.items() if not shutil.which(command)]
    if not os.path.exists("/usr/include/rdma/fi_endpoint.h"):
        missing.append("libfabric-dev")
    if missing:
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        sh("apt-get", "update", "-qq")
        sh("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing)


class Path:
    """Two namespaces, and a veth pair with this MTU between them."""

    def __init__(self, mtu):
        self.mtu = mtu

    def __enter__(self):
        for space in SPACES:
            sh("ip", "netns", "add", space)
        sh("ip", "link", "add", "w0", "mtu", str(self.mtu), "netns", SPACES[0], "type", "veth",
           "peer", "name", "w1", "mtu", str(self.mtu), "netns", SPACES[1])
        for space, link, address in zip(SPACES, ("w0", "w1"), ADDRESSES):
            sh("ip", "-n", space, "address", "add", f"{address}/24", "dev", link)
            sh("ip", "-n", space, "link", "set", link, "up")
            sh("ip", "-n", space, "link", "set", "lo", "up")
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        for space in SPACES:
            sh("ip", "netns", "delete", space, check=False)


class Pair:
    """Runs a server in one namespace and a client in the other."""

    def __init__(self, options):
        self.cores = [str(core) for core in options.cores]
        self.timeout = options.seconds + 30

    def words(self, end, words):
        return ["ip", "netns", "exec", SPACES[end], "taskset", "-c", self.cores[end], *words]

    def run(self, server, client, env=None):
        env = {**os.environ, **(env or {})}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        behind = subprocess.Popen(self.words(1, server), env=env, process_group=0, **quiet)
        try:
            time.sleep(0.4)
            done = subprocess.run(self.words(0, client), env=env, timeout=self.timeout, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                raise RuntimeError(f"{client[0]}: {done.stdout.strip()[-300:]}")
            return done.stdout
        finally:
            try:
                behind.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(behind.pid, signal.SIGKILL)
                behind.wait()


def bandwidths(pair, options, size, fabric_bw):
    """Contenders of many messages at once: a name, and what gives Gb/s."""
    n = str(max(200, int(options.seconds * 5e8 / size)))
    seconds = str(options.seconds)
    ucx = {"UCX_TLS": "tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def roci(verb, *more):
        words = [options.roci, "perf", verb, "-s", str(size), "-D", seconds, *more]
        out = pair.run(words, [*words, "--json", ADDRESSES[1]])
        return json.loads(out)["rows"][-1]["average_bps"] / 1e9

    def iperf():
        out = pair.run(["iperf3", "-s", "-1"], ["iperf3", "-c", ADDRESSES[1], "-J", "-t", seconds, "-l", str(size)])
        return json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e9

    def put():
        words = ["-t", "ucp_put_bw", "-s", str(size), "-n", n, "-w", "100", "-f"]
        out = pair.run(["ucx_perftest"], ["ucx_perftest", ADDRESSES[1], *words], ucx)
        # Iterations; percentile, average and overall latency; average and overall MB/s (of 2^20); messages per second.
        numbers = re.findall(r"[\d.]+", out.strip().splitlines()[-1].split(":")[-1])
        return float(numbers[5]) * 8 * 2**20 / 1e9

    def libfabric(provider, outstanding, octets):
        words = [fabric_bw, provider]
        more = [str(size), str(max(100, octets // size)), str(outstanding)]
        return float(pair.run([*words, *reversed(ADDRESSES), *more, "receive"], [*words, *ADDRESSES, *more, "send"]))

    yield "roci write-bw", lambda: roci("write-bw")
    yield "the same, --lone-writes", lambda: roci("write-bw", "--lone-writes")
    yield "roci send-bw", lambda: roci("send-bw")
    yield "iperf3 TCP", iperf
    yield "UCX tcp, put", put
    yield "libfabric tcp;ofi_rxm", lambda: libfabric("tcp;ofi_rxm", 64, int(options.seconds * 5e8))
    for outstanding in (1, 4, 64):
        yield f"udp;ofi_rxd, {outstanding} at once", lambda outstanding=outstanding: libfabric(
            "udp;ofi_rxd", outstanding, int(options.seconds * 2e7))


def pingpongs(pair, options, size):
    """Contenders of one message to and fro: a name, and what gives microseconds of half a round trip."""
    n = str(max(200, min(20_000, int(options.seconds * 1e9 / (size + 1e5)))))

    def roci(verb):
        words = [options.roci, "perf", verb, "-s", str(size), "-n", n]
        out = pair.run(words, [*words, "--json", ADDRESSES[1]])
        return json.loads(out)["rows"][-1]["typical_us"]

    def ucx():
        env = {"UCX_TLS": "tcp", "UCX_WARN_UNUSED_ENV_VARS": "n"}
        out = pair.run(["ucx_perftest"], ["ucx_perftest", ADDRESSES[1], "-t", "tag_lat", "-s", str(size), "-n", n,
                                          "-w", "100", "-f"], env)
        numbers = re.findall(r"[\d.]+", out.strip().splitlines()[-1].split(":")[-1])
        return float(numbers[1])

    def libfabric(provider, kind, count):
        words = ["fi_pingpong", "-p", provider, "-e", kind, "-S", str(size), "-I", count]
        out = pair.run(words, [*words, ADDRESSES[1]])
        # bytes, sent, acknowledged, total, time, MB/sec, µs per transfer, transfers per second
        return float(out.strip().splitlines()[-1].split()[6])

    yield "roci write-lat", lambda: roci("write-lat")
    yield "roci send-lat", lambda: roci("send-lat")
    yield "UCX tcp, tag", ucx
    yield "libfabric tcp", lambda: libfabric("tcp", "msg", n)
    yield "libfabric udp;ofi_rxd", lambda: libfabric("udp;ofi_rxd", "rdm", str(max(20, int(n) // 20)))


def rounds(title, unit, contenders, count, show, only):
    """Runs the contenders in turns; prints their medians, and each over that of the first."""
    contenders = [one for one in contenders if not only or any(part in one[0] for part in only)]
    if not contenders:
        return
    values = {name: [] for name, _ in contenders}
    broken = {}
    for _ in range(count):
        for name, measure in contenders:
            if name in broken:
                continue
            try:
                values[name].append(measure())
            except (RuntimeError, subprocess.TimeoutExpired, ValueError, IndexError, KeyError) as error:
                broken[name] = str(error).splitlines()[-1] if str(error) else type(error).__name__
    print(f"\n{title}\n{'':>24} {unit:>10} {'min':>8} {'max':>8}   ", end="")
    first = contenders[0][0]
    print(f"of {first}")
    for name, _ in contenders:
        if not values[name]:
            print(f"{name:>24}   {broken.get(name, 'no result')}")
            continue
        middle = statistics.median(values[name])
        share = f"{middle / statistics.median(values[first]):.2f}" if values[first] else "-"
        extra = show(middle) if show else ""
        print(f"{name:>24} {middle:>10.2f} {min(values[name]):>8.2f} {max(values[name]):>8.2f}   {share:>6}{extra}",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--roci", default=os.path.join(ROOT, "target/release/roci"), help="the command to measure")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement")
    parser.add_argument("--mtu", type=int, nargs="*", default=[9000, 1500], help="of the link")
    parser.add_argument("--only", nargs="*", help="contenders with one of these in their names")
    parser.add_argument("--sizes", type=int, nargs="*", default=[65_536, 1 << 20])
    cores = sorted(os.sched_getaffinity(0))
    parser.add_argument("--cores", type=int, nargs=2, default=[cores[0], cores[-1]], help="of client and server")
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("network namespaces and packages need root")
    if not os.access(options.roci, os.X_OK):
        sys.exit(f"{options.roci} is not there: cargo build --release -p roci-cli, or --roci")
    install()
    pair = Pair(options)
    with tempfile.TemporaryDirectory() as scratch:
        compare(pair, options, build(scratch))


def build(folder):
    """Builds what keeps many messages outstanding; gives its name."""
    made = os.path.join(folder, "fabric_bw")
    sh("cc", "-O2", "-o", made, os.path.join(HERE, "rivals/fabric_bw.c"), "-lfabric")
    return made


def compare(pair, options, fabric_bw):
    for mtu in options.mtu:
        with Path(mtu):
            for size in options.sizes:
                rounds(f"link MTU {mtu}, messages of {size} octets, many at once", "Gb/s",
                       bandwidths(pair, options, size, fabric_bw), options.rounds, None, options.only)
            for size in (64, 65_536):
                rounds(f"link MTU {mtu}, messages of {size} octets, one to and fro", "µs",
                       pingpongs(pair, options, size), options.rounds,
                       lambda us, size=size: f"   {size * 8 / us / 1e3:.2f} Gb/s", options.only)


if __name__ == "__main__":
    main()
