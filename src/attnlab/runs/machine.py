"""What a bug report should say of the machine: versions, processor, cores, memory, threads."""

import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import ClassVar, final

from attnlab.cores import memory, own_cores
from attnlab.results import Result
from attnlab.runs.environment import Environment, describe_environment
from attnlab.specs.codec import later

VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables of the environment that change how many threads there are and how they wait."""


@final
@dataclass(frozen=True, kw_only=True)
class Machine(Result):
    """The machine and the versions that attnlab finds here."""

    shown_by: ClassVar[str] = "attnlab.tables.machine"

    environment: Environment
    platform: str
    usable_cores: int
    memory: int | None = later(None)
    """Bytes that this process may use; absent where the system does not say."""
    packages: dict[str, str]
    """Versions of the packages that attnlab needs or can use, those that are installed."""
    variables: dict[str, str]


def describe_machine() -> Machine:
    """The machine as it is now."""
    bytes_here = memory()
    return Machine(
        environment=describe_environment(),
        platform=platform.platform(),
        usable_cores=len(own_cores()),
        memory=None if bytes_here == sys.maxsize else bytes_here,
        packages=_versions(requires("attnlab") or ()),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )


def _versions(requirements: Iterable[str]) -> dict[str, str]:
    names = {_name(each) for each in requirements if "extra == 'dev'" not in each.replace('"', "'")}
    found = {}
    for name in sorted(names):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra that nobody asked for
            continue
    return found


def _name(requirement: str) -> str:
    """``torch`` of ``torch>=2.9; extra == 'x'``."""
    for end, sign in enumerate(requirement):
        if not (sign.isalnum() or sign in "-_."):
            return requirement[:end]
    return requirement
