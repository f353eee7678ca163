"""Our own program, as cargo builds it."""

import json
import pathlib
import subprocess

from image import output

ROOT = pathlib.Path(__file__).resolve().parent.parent


def target_folder():
    """Where cargo builds."""
    told = output(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT)
    return pathlib.Path(json.loads(told)["target_directory"])


def built():
    """The program `roci`, built now."""
    subprocess.run(["cargo", "build", "--locked", "--quiet", "--workspace", "--bin", "roci"], cwd=ROOT, check=True)
    return target_folder() / "debug/roci"
