"""How a cell is carried out: what runs here, what runs in the guest, and when it is well."""

import contextlib
import pathlib
import subprocess
import time

import cells
import guest as guests

PROGRAMS = [["--workspace", "--example", "verify"], ["--workspace", "--bin", "roci"], ["--workspace", "--lib"]]
"""What cargo is to build; of the whole workspace, as its tests are built, so that nothing is built twice."""

HERE = pathlib.Path(__file__).parent

LIMIT = 90
"""Seconds after which a cell has failed."""

VERIFY_ROUNDS = 22
PINGS = 1000
VERIFY_PORT = 18600
PERFTEST_PORT = 18515
PINGPONG_PORT = 18700


class Bench:
    """The place where cells run, one after the other."""

    def __init__(self, network, guest, binaries, logs):
        self.network, self.guest, self.binaries, self.logs = network, guest, binaries, logs
        self.mtu = None
        for name in ["verify.py", "windows.py"]:
            guest.must(f"cat >/tmp/{name} <<'end of file'\n{(HERE / name).read_text()}end of file\n")
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

    def preloaded(self, cell, *words):
        """One of the distribution's programs on our side, with our library under it."""
        return ["env", f"LD_PRELOAD={self.binaries / 'libroci_verbs.so'}", f"ROCI_DEVICES={guests.OURS[cell.ip]}", *words]

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
                           "ib_send_lat ib_read_lat ib_atomic_lat rping ucmatose udaddy ibv_rc_pingpong ibv_ud_pingpong", limit=10)
        return not remarks, "; ".join(remarks), heard, said

    def guest_listens(self, by_cm, port=PERFTEST_PORT):
        """Waits until a program in the guest listens, to a TCP port or by RDMA-CM."""
        ready = f"grep -q ':{port:04X} .* 0A ' /proc/net/tcp /proc/net/tcp6"
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
    """Waits until a program of ours listens by RDMA-CM: its service has a socket of that name then."""
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), open(f"/proc/{process.pid}/net/unix") as lines:
            if any(f"@roci-endpoint/{address}/service/" in line for line in lines):
                return
        time.sleep(0.02)


def ping(ours):
    """rping at both ends, or `roci ping` at ours; what comes back is compared."""

    def run(bench, cell):
        here, there = guests.OURS[cell.ip], guests.GUESTS[cell.ip]
        # The guest's CM tells both ends how long to wait for an acknowledgement: 2.1 s where it is 6.1, 0.5 s where it is 6.12.
        pings = PINGS // {"": 1, "all-faults": 10, "heavy-loss": 100}[cell.fault]
        words = [bench.binaries / "roci", "ping"] if ours == "roci" else bench.preloaded(cell, "rping")
        if cell.direction == "to-guest":
            task = bench.guest.start(f"rping -s -a {there} -C {pings} -V", LIMIT)
            bench.guest_listens(by_cm=True)
            process = bench.ours(cell, *words, "-c", "-a", there, "-I", here, "-C", pings, "-V")
        else:
            process = bench.ours(cell, *words, "-s", "-a", here, "-C", pings)
            listens_by_cm(process, here)
            task = bench.guest.start(f"rping -c -a {here} -C {pings} -V", LIMIT)
        well, remark, _, _ = bench.both(cell, process, task)
        return well, f"{pings} pings" if well else remark

    return run


def example(program, *options):
    """One of librdmacm's examples at both ends."""

    def run(bench, cell):
        here, there = guests.OURS[cell.ip], guests.GUESTS[cell.ip]
        words = [program, *options]
        ours = bench.preloaded(cell, *words)
        if cell.direction == "to-guest":
            task = bench.guest.start(" ".join(map(str, [*words, "-b", there])), LIMIT)
            bench.guest_listens(by_cm=True)
            process = bench.ours(cell, *ours, "-s", there, "-b", here)
        else:
            process = bench.ours(cell, *ours, "-b", here)
            listens_by_cm(process, here)
            task = bench.guest.start(" ".join(map(str, [*words, "-s", here, "-b", there])), LIMIT)
        well, remark, heard, said = bench.both(cell, process, task)
        return well, last(said) if well else remark

    return run


def pingpong(kind):
    """One of libibverbs' examples at both ends; what comes is compared, where it is not a datagram."""
    words = [f"ibv_{kind}_pingpong", "-p", PINGPONG_PORT, "-n", PINGS, *(["-c"] if kind != "ud" else [])]

    def run(bench, cell):
        # They meet over TCP, and tell each other there where they are.
        met_here, met_there = guests.OURS[4], guests.GUESTS[4]
        theirs = [*words, "-d", "rxe0", "-g", guests.GID[cell.ip]]
        ours = bench.preloaded(cell, *words, "-g", 0)
        if cell.direction == "to-guest":
            task = bench.guest.start(" ".join(map(str, theirs)), LIMIT)
            bench.guest_listens(by_cm=False, port=PINGPONG_PORT)
            process = bench.ours(cell, *ours, met_there)
        else:
            process = bench.ours(cell, *ours)
            listens(process, PINGPONG_PORT)
            task = bench.guest.start(" ".join(map(str, [*theirs, met_here])), LIMIT)
        well, remark, heard, said = bench.both(cell, process, task)
        return well, last(said) if well else remark

    return run


def windows(bench, cell):
    """Memory windows of the end that requests go to: bound, used, ended, and misused."""
    ours, theirs = ("use", "own") if cell.direction == "to-guest" else ("own", "use")
    here, there = guests.OURS[cell.ip], guests.GUESTS[cell.ip]
    met = guests.OURS[4]
    # pyverbs is the system's, and no other interpreter's.
    words = ["/usr/bin/python3", "-B", HERE / "windows.py", "roci0", here, "-", cell.path_mtu, ours, "listen"]
    process = bench.ours(cell, *bench.preloaded(cell, *words))
    listens(process, VERIFY_PORT)
    script = f"python3 /tmp/windows.py rxe0 {there} {met} {cell.path_mtu} {theirs}"
    well, remark, heard, said = bench.both(cell, process, bench.guest.start(script, LIMIT))
    return well, last(heard if ours == "use" else said) if well else remark


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


def perftest(verb, metric, *options, ours="roci"):
    """One of perftest's tests, with `roci perf` at our end, or perftest itself over our library, and perftest at the other."""
    size, count = (64, 200) if metric == "lat" else (65536, 200 if verb == "atomic" else 100)

    def run(bench, cell):
        here = guests.OURS[cell.ip]
        # perftest 4.5 meets its peer over IPv4; the addresses that they tell each other there may be others.
        met_here, met_there = guests.OURS[4], guests.GUESTS[4]
        # An emulated guest on a busy machine takes longer to answer than the usual 67 ms.
        both = ["-n", count, "-u", 18, *options]
        if verb != "atomic":
            both += ["-s", size]
        program = f"ib_{verb}_{metric}"
        theirs = [program, "-d", "rxe0", "-x", guests.GID[cell.ip], "-F", *both]
        mine, there = [bench.binaries / "roci", "perf", f"{verb}-{metric}", *both], ["-d", here, met_there]
        if ours != "roci":
            mine, there = bench.preloaded(cell, program, "-d", "roci0", "-x", 0, "-F", *both), [met_there]
        by_cm = "-R" in options
        if cell.direction == "to-guest":
            task = bench.guest.start(" ".join(map(str, theirs)), LIMIT)
            bench.guest_listens(by_cm)
            process = bench.ours(cell, *mine, *there)
        else:
            process = bench.ours(cell, *mine)
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
    "atomic-lat": perftest("atomic", "lat"),
    **{f"{verb}-bw-q4": perftest(verb, "bw", "-q", 4) for verb in ["write", "send", "read", "atomic"]},
    **{f"{verb}-bw-b": perftest(verb, "bw", "-b") for verb in ["write", "send", "read", "atomic"]},
    **{f"{verb}-bw-cm": perftest(verb, "bw", "-R") for verb in ["write", "send", "read", "atomic"]},
    **{f"{verb}-lat-cm": perftest(verb, "lat", "-R") for verb in ["write", "send", "read", "atomic"]},
    "write-bw-uc": perftest("write", "bw", "-c", "UC"),
    # Its receiver waits for each message, and what it is sent at once is more than its socket, or an emulated guest, takes.
    "send-bw-uc": perftest(
        "send", "bw", "-c", "UC", "--rate_limit", 0.02, "--rate_units", "g", "--rate_limit_type", "SW"
    ),
    "write-lat-uc": perftest("write", "lat", "-c", "UC"),
    "send-lat-uc": perftest("send", "lat", "-c", "UC"),
    "rping": ping("roci"),
    "c-write-bw": perftest("write", "bw", ours="c"),
    "c-send-bw": perftest("send", "bw", ours="c"),
    # perftest asks for as many READs as the other end has room for, which may be more than its own device has.
    "c-read-bw": perftest("read", "bw", "-o", 16, ours="c"),
    "c-atomic-bw": perftest("atomic", "bw", "-o", 16, ours="c"),
    "c-send-lat": perftest("send", "lat", ours="c"),
    "c-send-lat-ud": perftest("send", "lat", "-c", "UD", ours="c"),
    "c-write-bw-cm": perftest("write", "bw", "-R", ours="c"),
    "c-write-bw-uc": perftest("write", "bw", "-c", "UC", ours="c"),
    "c-send-lat-uc": perftest("send", "lat", "-c", "UC", ours="c"),
    "c-rping": ping("c"),
    "c-ucmatose": example("ucmatose", "-c", 4, "-C", 20),
    "c-udaddy": example("udaddy", "-c", 4, "-C", 20),
    "c-windows": windows,
    "c-rc-pingpong": pingpong("rc"),
    "c-ud-pingpong": pingpong("ud"),
    "c-uc-pingpong": pingpong("uc"),
}
