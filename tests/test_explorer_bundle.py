"""Modules joined into one script do what they do apart."""

from pathlib import Path
from typing import Any

import pytest
from py_mini_racer import MiniRacer

from attnlab.explorer.bundle import bundle, module_files


def _write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "entry.js"


def _value(script: str) -> Any:
    with MiniRacer() as v8:
        return v8.eval(script)


def test_names_of_every_kind_reach_those_who_import_them(tmp_path: Path) -> None:
    entry = _write(
        tmp_path,
        base="""/** A module. */
/** @type {number} */ const one = 1;
/**
 * A number.
 */
export const seven = 7;
export class Box { constructor(value) { this.value = value; } }
const hidden = 3;
function three() { return hidden; }
export { three as drei };
""",
        middle="""import { seven, Box } from "./base.js";
import {
  drei as three,
} from './base.js';

const hidden = 100; // another one than that of base
/** @typedef {import("./base.js").Box} Box */
export function sum() { return new Box(seven + three() + hidden).value; }
export async function later() { return 1; }
""",
        entry="""import * as middle from "./middle.js";
import { seven } from "./base.js";
export function answer() { return [middle.sum(), seven, typeof middle.later].join(" "); }
""",
    )
    script = bundle(entry, "joined")
    assert not any(each in script for each in ("A module.", "A number."))
    assert _value(f"{script} joined.answer()") == "110 7 function"
    assert [path.name for path in module_files(entry)] == ["base.js", "middle.js", "entry.js"]


def test_what_has_no_imports_is_a_bundle_too(tmp_path: Path) -> None:
    entry = _write(tmp_path, entry="export const words = ['import { a } from b', `export`];\n")
    assert _value(f"{bundle(entry)} attnlab.words.length") == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("export default 3;", "entry.js has 'export default 3;'; only imports and exports by name"),
        ("export let x = 3;", "entry.js has 'export let x = 3;'"),
        ("import all from './other.js';", r"entry\.js has .import all from"),
        ("const a = () => import('./other.js');", r"entry\.js has .import\('./other\.js'\);"),
        ("import { a } from 'd3';", "entry.js imports 'd3'; only relative paths"),
        (
            "import { b } from './other.js';\nexport const a = b;",
            "in a circle: entry.js -> other.js -> entry.js",
        ),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    entry = _write(tmp_path, entry=text, other='import { a } from "./entry.js";\nexport const b = 1;\n')
    with pytest.raises(ValueError, match=complaint):
        bundle(entry)
