"""What the matrix tries: one cell is one run of a test between us and the guest.

A cell's name is KERNEL/IP/MTU/TEST/DIRECTION, with a fault as a sixth part where there is one: `6.1/v4/1500/verify/to-guest`.
The direction is where requests go: from us to the guest, or from the guest to us.
"""

import dataclasses
import itertools

FAULTS = {
    "loss": "netem loss 1%",
    "duplication": "netem duplicate 2%",
    "reordering": "netem delay 1ms reorder 2%",
    "all-faults": "netem delay 1ms reorder 1% loss 1% duplicate 1%",
    "heavy-loss": "netem loss 10%",
}
"""What netem does in the guest, in both directions."""


@dataclasses.dataclass(frozen=True)
class Cell:
    kernel: str
    ip: int
    mtu: int
    test: str
    direction: str
    fault: str = ""

    @property
    def name(self):
        parts = [self.kernel, f"v{self.ip}", str(self.mtu), self.test, self.direction, self.fault]
        return "/".join(part for part in parts if part)

    @property
    def path_mtu(self):
        return 4096 if self.mtu == 9000 else 1024


TESTS = ["verify", "write-bw", "send-bw", "read-bw", "atomic-bw", "write-lat", "send-lat", "read-lat", "atomic-lat"]
TESTS += ["write-bw-q4", "write-bw-b", "send-bw-b", "write-bw-cm", "send-bw-cm", "rping"]
MORE = ["send-bw-q4", "read-bw-q4", "atomic-bw-q4", "read-bw-b", "atomic-bw-b", "read-bw-cm", "atomic-bw-cm"]
MORE += ["write-lat-cm", "send-lat-cm", "read-lat-cm", "atomic-lat-cm"]
"""The same options with the other verbs, in the whole matrix alone."""
EACH = ["loss", "duplication", "reordering", "all-faults"]
FAULTED = ["rping", "write-bw-q4", "send-bw-b", "read-bw", "atomic-bw", "write-lat", "c-rc-pingpong", "c-read-bw"]
"""Those that run over a path with all faults; `verify` does with each."""
SET_UP = [("rping", "to-guest"), ("c-ucmatose", "to-guest"), ("c-ucmatose", "from-guest")]
"""Those over a path that loses much of what connects and disconnects them. Not rping from the guest, which says its farewell once."""
UNRELIABLE = ["write-bw-uc", "send-bw-uc", "write-lat-uc", "send-lat-uc"]
OF_C = [f"c-{test}" for test in ["write-bw", "send-bw", "read-bw", "atomic-bw", "send-lat", "send-lat-ud", "write-bw-cm", "rping"]]
OF_C += ["c-ucmatose", "c-udaddy", "c-rc-pingpong", "c-ud-pingpong", "c-uc-pingpong", "c-write-bw-uc", "c-send-lat-uc", "c-windows"]
"""Programs of the distribution at both ends, over our library at ours."""
WAYS = ["to-guest", "from-guest"]


def matrix():
    """All cells, those of one kernel and MTU together."""
    for kernel in ["6.1", "6.12"]:
        for mtu, ip, test, way in itertools.product([1500, 9000], [4, 6], TESTS + MORE, WAYS):
            # perftest 4.5 finds its peer by its IPv4 address alone.
            if ip == 6 and test.endswith("-cm"):
                continue
            yield Cell(kernel, ip, mtu, test, way)
        for ip, test, way in itertools.product([4, 6], UNRELIABLE + OF_C, WAYS):
            if ip == 4 or not test.endswith("-cm"):
                yield Cell(kernel, ip, 1500, test, way)
        for mtu, fault, ip, way in itertools.product([1500, 9000], EACH, [4, 6], WAYS):
            yield Cell(kernel, ip, mtu, "verify", way, fault)
        for test, ip, way in itertools.product(FAULTED, [4, 6], WAYS):
            yield Cell(kernel, ip, 1500, test, way, "all-faults")
        for (test, way), ip in itertools.product(SET_UP, [4, 6]):
            yield Cell(kernel, ip, 1500, test, way, "heavy-loss")
        for fault, way in itertools.product(["loss", "duplication"], WAYS):
            yield Cell(kernel, 4, 1500, "c-windows", way, fault)


CI = [
    *[f"6.1/v4/1500/{test}/to-guest" for test in TESTS],
    *[f"6.1/v6/9000/{test}/from-guest" for test in ["verify", "read-bw", "write-bw"]],
    "6.1/v4/1500/verify/to-guest/all-faults",
    "6.12/v4/1500/rping/to-guest/all-faults",
    "6.1/v6/1500/verify/from-guest/loss",
    "6.12/v4/9000/verify/to-guest",
    "6.12/v4/9000/write-bw/from-guest",
    "6.12/v6/1500/verify/from-guest",
    "6.12/v6/1500/rping/from-guest",
    "6.1/v4/1500/c-write-bw/to-guest",
    "6.1/v4/1500/c-write-bw-cm/from-guest",
    "6.1/v6/1500/c-ud-pingpong/to-guest",
    "6.12/v4/1500/c-send-lat-ud/from-guest",
    "6.12/v6/1500/c-rping/to-guest",
    "6.12/v4/1500/c-udaddy/from-guest",
    "6.1/v4/1500/c-uc-pingpong/to-guest",
    "6.12/v4/1500/c-write-bw-uc/from-guest",
    "6.1/v4/1500/write-bw-uc/from-guest",
    "6.12/v6/1500/send-lat-uc/to-guest",
    "6.1/v4/1500/c-windows/from-guest",
    "6.12/v6/1500/c-windows/to-guest",
]


def chosen_for_ci(cell):
    """Nearly forty cells, each kind of thing once or twice."""
    return cell.name in CI
