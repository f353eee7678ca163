"""Builds the guest from Debian's packages: its kernels, their initial RAM disks, and one root file system for all.

Packages are resolved by an instance of apt of its own, with an empty status, and unpacked without running anything of
theirs: neither root nor a chroot is needed.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

KERNELS = {"6.1": "bookworm", "6.12": "bookworm-backports"}
"""The kernels by the names that cells use, and the suites that have them."""

PACKAGES = """
    base-files base-passwd bash busybox-static coreutils grep iproute2 kmod libc-bin mount sed socat util-linux
    ibverbs-providers ibverbs-utils perftest python3-minimal python3-pyverbs rdmacm-utils
""".split()

MODULES = """
    virtio_pci virtio_blk virtio_net virtio_rng ext4 crc32c_generic crc32_generic crc32_pclmul
    rdma_rxe ib_uverbs rdma_ucm ib_umad
    sch_netem sch_ingress ifb act_mirred cls_matchall
""".split()
"""What the guest loads; those that a kernel has built in, or does not have, are passed over."""

FOR_THE_ROOT = ["virtio_pci", "virtio_blk", "ext4", "crc32c_generic"]
"""Modules without which there is no root file system, in the order of loading."""

HERE = pathlib.Path(__file__).parent
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unable(Exception):
    """Something is missing on this machine; the message says what, and what to do."""


def output(command, **options):
    """What a command prints; its failure is raised with what it said."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Unable(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def mirror():
    """The Debian mirror that this machine's own apt uses, unless DEBIAN_MIRROR names another."""
    if named := os.environ.get("DEBIAN_MIRROR"):
        return named
    targets = output(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT) $(ORIGIN)"])
    for line in targets.splitlines():
        uri, component, *origin = line.split(" ", 2)
        if component == "main" and "security" not in uri and (not origin or "Debian" in origin[0]):
            return uri
    raise Unable("no Debian mirror is known here: run apt-get update, or set DEBIAN_MIRROR")


class Apt:
    """An apt with its own state below `folder`."""

    def __init__(self, folder, suites):
        self.archives = folder / "cache/archives"
        for place in ["etc", "state/lists/partial", "cache/archives/partial", "log"]:
            (folder / place).mkdir(parents=True)
        (folder / "status").touch()
        source = f"[signed-by={KEYRING}] {mirror()}"
        sources = "".join(f"deb {source} {suite} main\n" for suite in suites)
        (folder / "etc/sources.list").write_text(sources)
        settings = {
            "Dir::Etc": folder / "etc",
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Log": folder / "log",
            "APT::Architecture": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Debug::NoLocking": "true",
        }
        lines = [f'{key} "{value}";' for key, value in settings.items()]
        # A proxy that the machine's own apt uses is this one's as well.
        own = output(["apt-config", "dump"]).splitlines()
        lines += [line for line in own if line.lower().startswith(("acquire::http::proxy", "acquire::https::proxy"))]
        config = folder / "apt.conf"
        config.write_text("\n".join(lines) + "\n")
        self.environment = {**os.environ, "APT_CONFIG": str(config)}
        self.get("update")

    def get(self, *arguments, **options):
        return output(["apt-get", "-q", "-y", *arguments], env=self.environment, **options)

    def download(self, packages, suite):
        """Downloads packages and what they depend on; gives the files."""
        self.get("--download-only", "-t", suite, "install", *packages)
        return sorted(self.archives.glob("*.deb"))

    def kernel(self, suite, folder):
        """Downloads the kernel of a suite, without what it depends on; gives the file."""
        lines = output(["apt-cache", f"-t={suite}", "depends", "linux-image-amd64"], env=self.environment).split()
        name = next(word for word in lines if word.startswith("linux-image-") and word != "linux-image-amd64")
        folder.mkdir()
        self.get("-t", suite, "download", name, cwd=folder)
        return next(folder.glob("*.deb"))


def unpack(package, root):
    """Unpacks a package over a tree whose /bin, /sbin and /lib are links into /usr."""
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    output(["tar", "-x", "-C", root, "--keep-directory-symlink", "--no-same-owner"], stdin=tar.stdout)
    if tar.wait() != 0:
        raise Unable(f"{package} cannot be unpacked")


def modules_of(tree, version, names):
    """The files of modules and of what they need, in the order of loading."""
    files = {}
    for name in names:
        shown = subprocess.run(
            ["modprobe", "-d", tree, "-S", version, "--show-depends", name], capture_output=True, text=True
        )
        for line in shown.stdout.splitlines():
            if line.startswith("insmod "):
                files[pathlib.Path(line.split()[1])] = None
    return list(files)


def root_tree(apt, root):
    """Makes the tree of the root file system, without kernel modules."""
    for place in ["bin", "sbin", "lib", "lib64"]:
        (root / "usr" / place).mkdir(parents=True)
        (root / place).symlink_to(f"usr/{place}")
    for package in apt.download(PACKAGES, "bookworm"):
        unpack(package, root)
    for place in ["proc", "sys", "dev", "run", "tmp", "root"]:
        (root / place).mkdir(exist_ok=True)
    for name in ["passwd", "group"]:
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    python = next((root / "usr/bin").glob("python3.*[0-9]"))
    (root / "usr/bin/python3").unlink(missing_ok=True)
    (root / "usr/bin/python3").symlink_to(python.name)
    (root / "etc/ld.so.conf").write_text("/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu\n")
    subprocess.run(["ldconfig", "-r", root], stderr=subprocess.DEVNULL, check=True)
    for place in ["doc", "man", "locale", "info", "lintian"]:
        shutil.rmtree(root / "usr/share" / place, ignore_errors=True)
    for name in ["init", "agent"]:
        shutil.copy(HERE / "guest" / name, root / "sbin" / name)
        (root / "sbin" / name).chmod(0o755)


def ram_disk(tree, version, busybox, folder, to):
    """Writes the initial RAM disk: what it takes to mount the root file system."""
    for place in ["bin", "dev", "proc", "sys", "modules", "system"]:
        (folder / place).mkdir(parents=True)
    shutil.copy(busybox, folder / "bin/busybox")
    names = []
    for file in modules_of(tree, version, FOR_THE_ROOT):
        shutil.copy(file, folder / "modules")
        names.append(file.name)
    (folder / "modules/order").write_text("".join(f"{name}\n" for name in names))
    shutil.copy(HERE / "guest/early", folder / "init")
    (folder / "init").chmod(0o755)
    pack = "find . | cpio --quiet -o -H newc -R 0:0 | gzip -1"
    with open(to, "wb") as file:
        subprocess.run(["sh", "-c", pack], cwd=folder, stdout=file, check=True)


def build(folder, say):
    """Builds into `folder`: `root.ext4`, and `vmlinuz-K` and `initrd-K` for each kernel K."""
    for command, package in [("mke2fs", "e2fsprogs"), ("cpio", "cpio"), ("depmod", "kmod"), ("dpkg-deb", "dpkg")]:
        if shutil.which(command) is None:
            raise Unable(f"{command} is missing: apt-get install {package}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as scratch:
        scratch = pathlib.Path(scratch)
        say("reading package lists")
        apt = Apt(scratch / "apt", dict.fromkeys(["bookworm", *KERNELS.values()]))
        root = scratch / "root"
        root.mkdir()
        say("downloading and unpacking packages")
        root_tree(apt, root)
        for kernel, suite in KERNELS.items():
            say(f"kernel {kernel}")
            tree = scratch / f"kernel-{kernel}"
            tree.mkdir()
            output(["dpkg-deb", "-x", apt.kernel(suite, scratch / f"deb-{kernel}"), tree])
            version = next((tree / "lib/modules").iterdir()).name
            output(["depmod", "-b", tree, version])
            for file in modules_of(tree, version, MODULES):
                place = root / file.relative_to(tree)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, place)
            for file in (tree / "lib/modules" / version).glob("modules.[bo]*"):
                if file.name.startswith(("modules.order", "modules.builtin")) and file.suffix != ".bin":
                    shutil.copy(file, root / "lib/modules" / version)
            output(["depmod", "-b", root, version])
            if not list((root / "lib/modules" / version).rglob("rdma_rxe.ko*")):
                raise Unable(f"kernel {version} has no rdma_rxe")
            disk = scratch / f"ram-{kernel}"
            ram_disk(tree, version, root / "bin/busybox", disk, scratch / f"initrd-{kernel}")
            shutil.move(tree / f"boot/vmlinuz-{version}", folder / f"vmlinuz-{kernel}")
            shutil.move(scratch / f"initrd-{kernel}", folder / f"initrd-{kernel}")
        say("file system")
        draft = scratch / "root.ext4"
        options = ["-O", "^has_journal,^metadata_csum", "-E", "root_owner=0:0", "-L", "root"]
        output(["mke2fs", "-q", "-t", "ext4", *options, "-d", root, draft, "700M"])
        shutil.move(draft, folder / "root.ext4")
        # The last thing that appears: what is there is whole.
        (folder / "recipe").write_text(recipe())


def recipe():
    """A digest of what an image is built from."""
    digest = hashlib.sha256()
    for source in [pathlib.Path(__file__), *sorted((HERE / "guest").iterdir())]:
        digest.update(source.read_bytes())
    return digest.hexdigest()


def is_built(folder):
    """Whether an image is there that was built from what is here now."""
    told = folder / "recipe"
    return told.exists() and told.read_text() == recipe()
