"""One HTML file in which a run's model runs in the page: opened from disk, it asks nobody for anything.

The page carries the subject, the weights as text (``weights.py``), what takes the place of parts that are
switched off, examples of each stratum (``stored.py``), the explorer's modules and the reader of the task as
one script, and the style. Its policy allows that script by its hash and no connection at all.

Before it is written, the script itself answers examples in V8: it must say what torch says, with logits
within ``reference.TOLERANCE``.
"""

import base64
import copy
import hashlib
import html
import json
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attnlab.errors import LabError
from attnlab.explorer.bench import Bench, run_inputs
from attnlab.explorer.bundle import bundle
from attnlab.explorer.description import describe_engine
from attnlab.explorer.edits import Parts
from attnlab.explorer.javascript import require_javascript
from attnlab.explorer.messages import pack as plain
from attnlab.explorer.reference import CHECKED, TOLERANCE, Reference, compare, fewest_bits, floats, refer
from attnlab.explorer.scene import Asked, Stratum, Subject
from attnlab.explorer.standins import StandInValues
from attnlab.explorer.stored import StoredExamples, store, store_split
from attnlab.explorer.tasks import output_labels
from attnlab.explorer.weights import pack
from attnlab.progress import Progress, Stages, silent
from attnlab.results import Result
from attnlab.runs import RunFolder
from attnlab.specs.task import Reader
from attnlab.storage import make_folder, write_text

JS = Path(__file__).with_name("js")
SPLITS: tuple[Asked, ...] = ("valid", "test")


@dataclass(frozen=True, kw_only=True)
class Handout(Result):
    """What was written: ``bits`` a weight, and how far logits in the page are from torch's, at most, over
    ``examples`` that both answer alike.
    """

    run: str
    file: str
    bytes: int
    bits: int
    examples: int
    difference: float
    tolerance: float


@dataclass(frozen=True)
class Prepared:
    """Everything a page is made of, and what torch answers to examples."""

    title: str
    script: str
    style: str
    data: dict[str, Any]
    bits: int
    reference: Reference

    def page(self) -> str:
        """The file."""
        return _page(self)


def write_handout(run: RunFolder, path: Path, *, stages: Stages = lambda _: silent) -> Handout:
    """Write the page of ``run``, once the model in it answers as torch does."""
    require_javascript()
    prepared = prepare(run.on_cpu(), progress=stages("answering with torch"))
    away = compare(
        prepared.reference, prepared.script, prepared.data, progress=stages("answering in the page")
    )
    page = prepared.page()
    make_folder(path.parent)
    write_text(path, page)
    return Handout(
        run=run.name,
        file=str(path),
        bytes=len(page.encode()),
        bits=prepared.bits,
        examples=len(prepared.reference),
        difference=away,
        tolerance=TOLERANCE,
    )


def prepare(run: RunFolder, *, answers: int = CHECKED, progress: Progress = silent) -> Prepared:
    """What the page of ``run`` is made of, with as many answers of torch to compare with."""
    inputs = run_inputs(run)
    inputs = replace(inputs, model=copy.deepcopy(inputs.model))
    reference, reader = refer(inputs, answers, progress=progress), inputs.task.reader()
    bits = fewest_bits(reference)
    examples = {split: store_split(inputs, split) for split in SPLITS}
    bench = Bench.of_run(run)
    subject = _subject(bench, reader, examples)
    stand_ins = StandInValues(inputs, Parts.of(inputs.model))
    data = {
        "subject": plain(subject)[0],
        "description": replace(describe_engine(run), scaling=inputs.scale).to_json(),
        "weights": pack(floats(inputs.model.state_dict()), bits).to_json(),
        "means": _means(stand_ins, bits),
        "others": _others(stand_ins).to_json(),
        "symbols": output_labels(inputs.task, reference.logits.shape[-1]),
        "examples": {split: stored.to_json() for split, stored in examples.items()},
        "facts": reader.facts,
        "findings": plain(bench.findings())[0],
    }
    script = _script(reader)
    return Prepared(subject.title, script, _style(), data, bits, reference)


def _subject(bench: Bench, reader: Reader, examples: dict[Asked, StoredExamples]) -> Subject:
    """The subject as a page without Python has it."""
    found = bench.describe()
    writes = found.task.input != "text" or reader.writes
    able = found.abilities
    return replace(
        found,
        task=replace(
            found.task,
            input=found.task.input if writes else "examples",
            splits={
                split: [Stratum(name, len(rows)) for name, rows in stored.strata]
                for split, stored in examples.items()
            },
        ),
        snapshots=[],
        abilities=replace(able, snapshots=False, findings=bench.findings() is not None),
        source="handout",
    )


def _means(stand_ins: StandInValues, bits: int) -> dict[str, Any] | None:
    """Mean values of training examples at each place."""
    if not stand_ins.parts.outputs():
        return None
    values = {name: value[0] for name, value in stand_ins.get("mean", 0).items()}
    return pack(values, bits).to_json()


def _others(stand_ins: StandInValues) -> StoredExamples:
    """The examples to resample from: one, or where inputs differ in length one of each length."""
    inputs = stand_ins.inputs
    known = inputs.lengths("valid")
    lengths = [0] if known is None else sorted(set(known.tolist()))
    given = [inputs.given(stand_ins.other(length), "another") for length in lengths]
    return store(given, list(range(len(given))), len(given))


def _script(reader: Reader) -> str:
    """The explorer's modules and the reader of the task; in a page it begins."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reader.js"
        path.write_text(reader.source, encoding="utf-8")
        try:
            reading = bundle(path, "reader")
        except ValueError as error:
            raise LabError(f"the reader of the task cannot be bundled: {error}") from error
    begin = 'const page = typeof document === "undefined" ? null : attnlab.start(reader);\n'
    return _inside_html(bundle(JS / "handout.js") + reading + begin)


def _inside_html(script: str) -> str:
    """A script that no parser of HTML takes to be over before its end."""
    return re.sub(r"<(?=/script|!--)", r"<\\", script, flags=re.IGNORECASE)


def _style() -> str:
    return (JS / "style.css").read_text(encoding="utf-8")


def _page(made: Prepared) -> str:
    style, script = f"\n{made.style}", f"\n{made.script}"
    policy = (
        f"default-src 'none'; script-src {_hash(script)} 'wasm-unsafe-eval'; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(made.data, ensure_ascii=False, separators=(",", ":")).replace("<", r"\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(made.title)}</title>
<style>{style}</style>
</head>
<body>
<div id="explorer"><noscript>The model runs in this page, which needs JavaScript.</noscript></div>
<script type="application/json" id="handout">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
