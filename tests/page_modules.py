"""Functions of the explorer's modules, asked in node; pictures come and go as lists."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

MODULES = Path(__file__).parent.parent / "src/attnlab/explorer/js"
NODE = shutil.which("node")
RUN = """
import {readFileSync} from "node:fs";
const asked = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const {file, call, given} of asked) {
  const module = await import(`MODULES/${file}.js`);
  try {
    answers.push({value: plain(module[call](...given.map(read)))});
  } catch (error) {
    answers.push({error: error.message});
  }
}
console.log(JSON.stringify(answers));
function read(value) {
  if (!value?.grey) return value;
  return {height: value.height, width: value.width, data: Float64Array.from(value.grey)};
}
function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
"""


def ask(*calls: tuple[str, str, list[Any]]) -> list[dict[str, Any]]:
    """The value or the error of each call (file, function, arguments), all from one process."""
    asked = [{"file": file, "call": call, "given": given} for file, call, given in calls]
    answers: list[dict[str, Any]] = json.loads(run_module(RUN, json.dumps(asked)))
    return answers


def run_module(script: str, given: str) -> str:
    """What a module writes, given its input; ``MODULES`` in it stands for their address."""
    script = script.replace("MODULES", MODULES.resolve().as_uri())
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-e", script],
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
