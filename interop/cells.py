"""What the matrix tries: one cell is one run of a test between us and the guest.

A cell's name is KERNEL/IP/MTU/TEST/DIRECTION, with a fault as a sixth part where there is one: `6.1/v4/1500/verify/to-guest`.
The direction is where requests go: from us to the guest, or from the guest to us.
"""

import dataclasses
import itertools

FAULTS = {
    "loss": "netem loss 1%",
    "duplication": "netem duplicate 2%",
    "reordering": "netem delay 1ms reorder 99%",
    "all-faults": "netem delay 1ms reorder 99.5% loss 1% duplicate 1%",
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


VERIFY = ["verify"]


def matrix():
    """All cells, those of one kernel together."""
    for kernel in ["6.1", "6.12"]:
        for mtu, ip, test, way in itertools.product([1500, 9000], [4, 6], VERIFY, ["to-guest", "from-guest"]):
            yield Cell(kernel, ip, mtu, test, way)
        for fault, ip, way in itertools.product(FAULTS, [4, 6], ["to-guest", "from-guest"]):
            yield Cell(kernel, ip, 1500, "verify", way, fault)


def chosen_for_ci(cell):
    """About twenty cells, each kind of thing once or twice."""
    if cell.fault:
        return cell.kernel == "6.1" and (cell.ip == 4 or cell.fault == "loss")
    return cell.kernel == "6.1" or cell.mtu == 1500
