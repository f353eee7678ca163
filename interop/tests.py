"""How a cell is carried out: what runs here, what runs in the guest, and when it is well."""

import contextlib
import pathlib
import subprocess
import time

import cells
import guest as guests

PROGRAMS = [["--workspace", "--example", "verify"], ["--workspace", "--bin", "roci"]]
"""What cargo is to build; of the whole workspace, as its tests are built, so that nothing is built twice."""

LIMIT = 90
"""Seconds after which a cell has failed."""

VERIFY_ROUNDS = 22
PINGS = 1000
VERIFY_PORT = 18600
PERFTEST_PORT = 18515


class Bench:
    """The place where cells run, one after the other."""

    def __init__(self, network, guest, binaries, logs):
        self.network, self.guest, self.binaries, self.logs = network, guest, binaries, logs
        self.mtu = None
        program = (pathlib.Path(__file__).parent / "verify.py").read_text()
        guest.must(f"cat >/tmp/verify.py <<'end of file'\n{program}end of file\n")
        # What arrives goes through a device of its own, so that faults can meet it as well.
        guest.must(
            "modprobe ifb numifbs=1; modprobe act_mirred; ip link set ifb0 up; "
            "tc qdisc add dev eth0 ingress && tc filter add dev eth0 parent ffff: matchall "
            "action mirred egress redirect dev ifb0"
        )

    def run(self, cell):
        """Whether it is well, and a remark."""
        try:
            self.set_mtu(cell.mtu)
            with self.faults(cell):
                return TESTS[cell.test](self, cell)
        except (OSError, guests.Unable) as error:
            return False, str(error)

    def set_mtu(self, mtu):
        if mtu == self.mtu:
            return
        self.guest.must(f"ip link set eth0 mtu {mtu}; ip link set ifb0 mtu {mtu}")
        for device in ["tap1", "br0"]:
            self.network.run("ip", "link", "set", device, "mtu", mtu)
        self.mtu = mtu

    @contextlib.contextmanager
    def faults(self, cell):
        if not cell.fault:
            yield
            return
        devices = ["eth0", "ifb0"]
        try:
            for device in devices:
                self.guest.must(f"tc qdisc add dev {device} root {cells.FAULTS[cell.fault]}")
            yield
        finally:
            for device in devices:
                self.guest.run(f"tc qdisc del dev {device} root")

    def ours(self, cell, *words):
        """Starts one of our programs; what it says goes to a file."""
        log = (self.logs / f"{cell.name.replace('/', '_')}-ours.txt").open("w+")
        process = self.network.start(*words, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        process.log = log
        return process

    def both(self, cell, process, task):
        """Waits for both sides; gives what they said, the guest's first."""
        until = time.monotonic() + LIMIT
        remarks = []
        try:
            status = process.wait(max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = "no end"
        guests.stop(process)
        process.log.seek(0)
        said = process.log.read()
        process.log.close()
        if status != 0:
            remarks.append(f"ours ({status}): {last(said)}")
        task.join(max(1, until - time.monotonic()))
        there, heard = task.result
        (self.logs / f"{cell.name.replace('/', '_')}-guest.txt").write_text(heard)
        if there != 0:
            remarks.append(f"guest ({'no end' if there is None else there}): {last(heard)}")
        if remarks:
            self.guest.run("busybox killall -9 python3 ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw ib_write_lat "
                           "ib_send_lat ib_read_lat rping", limit=10)
        return not remarks, "; ".join(remarks), heard, said


    def guest_listens(self, by_cm):
        """Waits until a program in the guest listens, to perftest's TCP port or by RDMA-CM."""
        ready = f"grep -q ':{PERFTEST_PORT:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6"
        if by_cm:
            ready = "rdma resource show cm_id | grep -q 'state LISTEN'"
        self.guest.must(f"for try in $(seq 200); do {ready} && exit 0; sleep 0.05; done; exit 1")


def last(text):
    """The last line that says something."""
    lines = [line for line in text.strip().splitlines() if line.strip(" -")]
    return lines[-1].strip()[:160] if lines else "nothing"


def listens(process, port):
    """Waits until a program of ours listens at a TCP port."""
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        for table in ["tcp", "tcp6"]:
            with contextlib.suppress(OSError), open(f"/proc/{process.pid}/net/{table}") as lines:
                if any(line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}") for line in lines):
                    return
        time.sleep(0.02)


def listens_by_cm(process, address):
    """Waits until a program of ours takes connections by RDMA-CM: it then has the number for management."""
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/net/unix") as lines:
            if any(line.rstrip().endswith(f"@roci-endpoint/{address}/management") for line in lines):
                break
        time.sleep(0.02)
    time.sleep(0.2)


def ping(bench, cell):
    """rping at one end and `roci ping` at the other; what comes back is compared."""
    here, there = guests.OURS[cell.ip], guests.GUESTS[cell.ip]
    roci = bench.binaries / "roci"
    if cell.direction == "to-guest":
        task = bench.guest.start(f"rping -s -a {there} -C {PINGS} -V", LIMIT)
        bench.guest_listens(by_cm=True)
        process = bench.ours(cell, roci, "ping", "-c", "-a", there, "-I", here, "-C", PINGS, "-V")
    else:
        process = bench.ours(cell, roci, "ping", "-s", "-a", here, "-C", PINGS)
        listens_by_cm(process, here)
        task = bench.guest.start(f"rping -c -a {here} -C {PINGS} -V", LIMIT)
    well, remark, _, said = bench.both(cell, process, task)
    return well, f"{PINGS} pings" if well else remark


GAVE_UP = "completion with status 5, 2 to go"
"""What the guest's program says when its kernel has ended a READ without its data, and has flushed the two atomics behind it."""


def verify(bench, cell):
    """Every octet of SENDs, WRITEs, READs and atomics is compared.

    The requester of kernel 6.12 gives up when an acknowledgement falls between a READ's responses, which a path that reorders
    may bring about with whatever responder: once is forgiven then, and told.
    """
    well, remark = verify_once(bench, cell)
    reorders = cell.fault in ("reordering", "all-faults")
    if not well and GAVE_UP in remark and (cell.kernel, cell.direction) == ("6.12", "from-guest") and reorders:
        well, remark = verify_once(bench, cell)
        remark = f"at the second attempt, for the guest gave up a READ: {remark}"
    return well, remark


def verify_once(bench, cell):
    ours, theirs = ("lead", "follow") if cell.direction == "to-guest" else ("follow", "lead")
    here, there = guests.OURS[cell.ip], guests.GUESTS[cell.ip]
    program = bench.binaries / "examples/verify"
    process = bench.ours(cell, program, here, cell.path_mtu, ours, VERIFY_ROUNDS)
    listens(process, VERIFY_PORT)
    script = f"python3 /tmp/verify.py {here} {there} {cell.path_mtu} {theirs} {VERIFY_ROUNDS}"
    well, remark, _, said = bench.both(cell, process, bench.guest.start(script, LIMIT))
    return well, remark if not well else said.strip().splitlines()[-1].partition("; ")[2]


def perftest(verb, metric, *options):
    """One of perftest's tests, with `roci perf` at one end and perftest at the other."""
    size, count = (64, 200) if metric == "lat" else (65536, 200 if verb == "atomic" else 100)

    def run(bench, cell):
        here = guests.OURS[cell.ip]
        # perftest 4.5 meets its peer over IPv4; the addresses that they tell each other there may be others.
        met_here, met_there = guests.OURS[4], guests.GUESTS[4]
        # An emulated guest on a busy machine takes longer to answer than the usual 67 ms.
        both = ["-n", count, "-u", 18, *options]
        ours = [bench.binaries / "roci", "perf", f"{verb}-{metric}", *both]
        theirs = [f"ib_{verb}_{metric}", "-d", "rxe0", "-x", guests.GID[cell.ip], "-F", *both]
        if verb != "atomic":
            ours += ["-s", size]
            theirs += ["-s", size]
        by_cm = "-R" in options
        if cell.direction == "to-guest":
            task = bench.guest.start(" ".join(map(str, theirs)), LIMIT)
            bench.guest_listens(by_cm)
            process = bench.ours(cell, *ours, "-d", here, met_there)
        else:
            process = bench.ours(cell, *ours)
            if by_cm:
                listens_by_cm(process, here)
            else:
                listens(process, PERFTEST_PORT)
            task = bench.guest.start(" ".join(map(str, [*theirs, met_here])), LIMIT)
        well, remark, heard, said = bench.both(cell, process, task)
        if not well:
            return False, remark
        # Whoever answers READs says nothing of them.
        measured = result(heard) or result(said)
        return measured is not None, measured or "neither end says what it measured"

    return run


def result(heard):
    """What the last row of perftest's table says, or `None` where there is none."""
    rows = [line.split() for line in heard.splitlines() if line.split() and line.split()[0].isdigit()]
    if not rows:
        return None
    row = rows[-1]
    return f"{row[3]} MB/s" if len(row) == 5 else f"{row[4]} us"


TESTS = {
    "verify": verify,
    "write-bw": perftest("write", "bw"),
    "send-bw": perftest("send", "bw"),
    "read-bw": perftest("read", "bw"),
    "atomic-bw": perftest("atomic", "bw"),
    "write-lat": perftest("write", "lat"),
    "send-lat": perftest("send", "lat"),
    "read-lat": perftest("read", "lat"),
    "write-bw-q4": perftest("write", "bw", "-q", 4),
    "send-bw-b": perftest("send", "bw", "-b"),
    "write-bw-b": perftest("write", "bw", "-b"),
    "write-bw-cm": perftest("write", "bw", "-R"),
    "send-bw-cm": perftest("send", "bw", "-R"),
    "rping": ping,
}
