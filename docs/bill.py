"""The software bill of materials: ``python docs/bill.py`` writes ``docs/sbom.cdx.json`` (CycloneDX 1.6).

It names what attnlab ships besides its code, every package that it can bring along, with version and
licence as the installed packages state them, and what each of them needs. ``required`` are the packages of
attnlab itself, ``optional`` those of its extras, ``excluded`` those that only tests use. Their files and
SHA-256 stand in ``locks/``. It holds neither date nor serial number: the same packages give the same bytes.
"""

import json
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License, LicenseAcknowledgement
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.spdx import is_supported_id
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attnlab.storage import write_text

ROOT = Path(__file__).parent.parent
BILL = ROOT / "docs/sbom.cdx.json"

SHIPPED = (
    ("MNIST sample", ComponentType.DATA, "CC-BY-SA-3.0", "src/attnlab/data/sample"),
    ("zoo", ComponentType.MACHINE_LEARNING_MODEL, "MIT", "src/attnlab/zoo"),
)
"""What is in the package besides code: its name, what it is, its licence, its folder."""

WORDS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "ISC license": "ISC",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What packages write instead of an SPDX identifier."""


def main() -> None:
    write_text(BILL, as_json(bill()))


def bill() -> Bom:
    """What attnlab ships and may bring along, as the packages here state it."""
    bom, project = Bom(), tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    whole = Component(
        name="attnlab",
        version=project["version"],
        type=ComponentType.APPLICATION,
        bom_ref="attnlab",
        licenses=[licence(project["license"])],
    )
    whole.components = [
        Component(
            name=name,
            type=kind,
            bom_ref=name,
            licenses=[licence(words)],
            properties=[Property(name="folder", value=place)],
        )
        for name, kind, words, place in SHIPPED
    ]
    bom.metadata.component = whole
    extras = project["optional-dependencies"]
    tests = extras.pop("dev")
    needed, more = (
        chosen(project["dependencies"]),
        chosen(line for lines in extras.values() for line in lines),
    )
    scopes = packages(needed, more, chosen(tests))
    known = {name: component(name, scope) for name, scope in scopes.items()}
    for name, each in known.items():
        bom.components.add(each)
        bom.register_dependency(each, [known[other] for other in sorted(needs(name)) if other in known])
    bom.register_dependency(whole, [known[name] for name in sorted(needed | more)])
    return bom


def packages(needed: set[str], more: set[str], tests: set[str]) -> dict[str, ComponentScope]:
    """Every package by its name, and what it is there for."""
    found: dict[str, ComponentScope] = {}
    for scope, first in (
        (ComponentScope.REQUIRED, needed),
        (ComponentScope.OPTIONAL, more),
        (ComponentScope.EXCLUDED, tests),
    ):
        waiting = list(first)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = scope
                waiting += needs(name)
    return dict(sorted(found.items()))


@cache
def needs(name: str, extra: str = "") -> set[str]:
    """The packages that one needs here, or one of its extras."""
    return chosen(distribution(name).requires or [], extra)


def chosen(lines: Iterable[str], extra: str = "") -> set[str]:
    """Those of the requirements that hold on this machine."""
    found = set[str]()
    for wanted in map(Requirement, lines):
        holds = wanted.marker is None or wanted.marker.evaluate({"extra": extra})
        if holds and installed(name := canonicalize_name(wanted.name)):
            found |= {name, *(other for each in wanted.extras for other in needs(name, each))}
    return found


@cache
def installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def component(name: str, scope: ComponentScope, kind: ComponentType = ComponentType.LIBRARY) -> Component:
    version = distribution(name).version.partition("+")[0]  # a build of torch is no version of its own
    url = PackageURL("pypi", None, canonicalize_name(name), version)
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
        scope=scope,
        licenses=[licence(stated(name))],
    )


def stated(name: str) -> str:
    """The licence that a package states: an SPDX expression where it can be read as one."""
    about = metadata(name)
    if about["License-Expression"]:
        return str(about["License-Expression"])
    classes = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier") or []
        if each.startswith("License ::")
    ]
    classes = [words for words in classes if words != "OSI Approved"]
    first = re.split(r"\n|  ", about["License"] or "")[0].strip()
    said = [WORDS.get(words, words) for words in (first, *classes)]
    return next(
        (words for words in said if is_supported_id(words)), ", ".join(classes) or first or "not stated"
    )


def licence(words: str) -> License:
    """An SPDX identifier or expression, or else the words themselves."""
    return LicenseFactory().make_from_string(words, license_acknowledgement=LicenseAcknowledgement.DECLARED)


def as_json(bom: Bom) -> str:
    data: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    del data["serialNumber"], data["metadata"]["timestamp"]
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    main()
