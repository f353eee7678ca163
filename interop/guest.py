"""A network of its own with a guest in it whose kernel has Soft-RoCE.

All of it hangs on processes that die with this one: the namespace is held by a process and has no name, and every process
is told to end when its parent does. So nothing is left, however the run ends.

    our side    bridge br0, 10.77.0.1 and fd77::1
    the guest   behind tap1, 10.77.0.11 and fd77::11
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

from image import Unable, output

OURS = {4: "10.77.0.1", 6: "fd77::1"}
GUESTS = {4: "10.77.0.11", 6: "fd77::11"}
GID = {4: 1, 6: 2}
"""The guest's addresses as places in its device's table."""
AGENT = 2323
MTU_MAX = 9000
BOOT_LIMIT = 120

TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "tshark": "tshark",
    "dumpcap": "wireshark-common",
    "ib_write_bw": "perftest",
    "rping": "rdmacm-utils",
    "ibv_rc_pingpong": "ibverbs-utils",
}
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL"]


def check_machine():
    """Raises `Unable` where something is missing that only the machine's owner can give."""
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            raise Unable(f"{tool} is missing: apt-get install {package}")
    if os.geteuid() != 0:
        raise Unable("this needs root, for a network namespace and a tap device: run it with sudo, or in a VM")
    if not os.path.exists("/dev/net/tun"):
        raise Unable("there is no /dev/net/tun: modprobe tun, or give the container --device /dev/net/tun")
    probe = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise Unable(
            f"no network namespace can be made ({probe.stderr.strip()}): "
            "a container needs --privileged, or CAP_SYS_ADMIN and CAP_NET_ADMIN"
        )


class Network:
    """The namespace with the bridge."""

    def __init__(self):
        self.holder = subprocess.Popen([*DIE_WITH_US, "unshare", "--net", "sleep", "infinity"])
        self.path = f"/proc/{self.holder.pid}/ns/net"
        self.own = os.open("/proc/self/ns/net", os.O_RDONLY)
        until = time.monotonic() + 5
        while os.readlink(self.path) == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > until:
                raise Unable("the network namespace does not come up")
            time.sleep(0.01)
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        self.run("ip", "link", "set", "br0", "address", "52:54:00:77:00:01", "mtu", str(MTU_MAX))
        self.run("ip", "address", "add", f"{OURS[4]}/24", "dev", "br0")
        self.run("ip", "-6", "address", "add", f"{OURS[6]}/64", "dev", "br0", "nodad")
        self.run("ip", "link", "set", "br0", "up")
        self.run("ip", "tuntap", "add", "dev", "tap1", "mode", "tap")
        self.run("ip", "link", "set", "tap1", "mtu", str(MTU_MAX), "master", "br0", "up")

    def command(self, *words):
        """A command that runs in the namespace and dies with us."""
        return [*DIE_WITH_US, "nsenter", f"--net={self.path}", *map(str, words)]

    def run(self, *words):
        return output(self.command(*words))

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), **options)

    @contextlib.contextmanager
    def inside(self):
        """Lets this thread be in the namespace: sockets that it makes stay there."""
        there = os.open(self.path, os.O_RDONLY)
        try:
            if LIBC.setns(there, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            yield
        finally:
            LIBC.setns(self.own, CLONE_NEWNET)
            os.close(there)

    def close(self):
        stop(self.holder)
        os.close(self.own)


def stop(process, how=signal.SIGTERM, patience=5):
    """Ends a process, gently first."""
    if process is None or process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Guest:
    """The virtual machine."""

    def __init__(self, network, image, kernel, name, logs, accelerator):
        self.network = network
        self.console = pathlib.Path(logs) / f"console-{name}.txt"
        self.said = pathlib.Path(logs, f"qemu-{name}.txt").open("w+")
        append = f"console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 random.trust_cpu=1 guest.mtu={MTU_MAX}"
        append += f" guest.v4={GUESTS[4]}/24 guest.v6={GUESTS[6]}/64"
        # No offload: each packet is a frame of its own, with its checksum, for who captures.
        plain = "csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ufo=off"
        self.process = network.start(
            *["qemu-system-x86_64", "-machine", f"q35,accel={accelerator}", "-cpu", "max", "-m", "1G", "-smp", "1"],
            *["-nodefaults", "-no-reboot", "-display", "none", "-serial", f"file:{self.console}"],
            *["-kernel", image / f"vmlinuz-{kernel}", "-initrd", image / f"initrd-{kernel}", "-append", append],
            *["-drive", f"file={image / 'root.ext4'},format=raw,if=virtio,snapshot=on"],
            *["-netdev", "tap,id=net,ifname=tap1,script=no,downscript=no"],
            *["-device", f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:0b,host_mtu={MTU_MAX},romfile=,{plain}"],
            *["-device", "virtio-rng-pci"],
            stdin=subprocess.DEVNULL,
            stderr=self.said,
        )

    def wait(self):
        """Waits until the guest takes commands."""
        until = time.monotonic() + BOOT_LIMIT
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self.said.seek(0)
                raise Unable(f"the guest ended: {self.said.read()}{self.console.read_text()}")
            with contextlib.suppress(OSError):
                if self.run("rdma link show rxe0/1", limit=10)[0] == 0:
                    return
            time.sleep(0.3)
        raise Unable(f"the guest did not come up in {BOOT_LIMIT} s: {self.console.read_text()}")

    def connect(self, limit):
        with self.network.inside():
            return socket.create_connection((GUESTS[4], AGENT), timeout=limit)

    def run(self, script, limit=60):
        """Runs a shell script in the guest; gives its status, None when it did not end in time, and what it printed."""
        text, line = b"", None
        try:
            with self.connect(limit) as line:
                line.sendall(script.encode())
                line.shutdown(socket.SHUT_WR)
                until = time.monotonic() + limit
                while data := line.recv(65536):
                    text += data
                    line.settimeout(max(0.1, until - time.monotonic()))
        except TimeoutError:
            return None, text.decode(errors="replace")
        said, _, status = text.decode(errors="replace").rpartition("\nstatus ")
        return (int(status), said) if status.strip().isdigit() else (None, text.decode(errors="replace"))

    def must(self, script):
        status, said = self.run(script)
        if status != 0:
            raise Unable(f"in the guest: {script}: {said.strip()}")
        return said

    def answers(self):
        """Whether it still takes commands; a busy one may be slow."""
        for _ in range(3):
            with contextlib.suppress(OSError):
                if self.run("true", limit=20)[0] == 0:
                    return True
        return False

    def start(self, script, limit):
        """Runs a script in the guest while this goes on; the thread's `result` is what `run` gives."""
        return Task(self, script, limit)

    def close(self):
        stop(self.process)
        self.said.close()


class Task(threading.Thread):
    """A script that runs in the guest."""

    def __init__(self, guest, script, limit):
        super().__init__(daemon=True)
        self.guest, self.script, self.limit, self.result = guest, script, limit, (None, "")
        self.start()

    def run(self):
        try:
            self.result = self.guest.run(self.script, self.limit)
        except OSError as error:
            self.result = (None, str(error))
