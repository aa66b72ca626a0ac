"""The engine in JavaScript, asked from Python: in V8, in one context for all models."""

import json
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from py_mini_racer import MiniRacer
from torch import Tensor

import attnlab
from attnlab.explorer.bundle import bundle
from attnlab.explorer.description import EngineDescription

ENGINE = Path(attnlab.__file__).parent / "explorer" / "js" / "engine" / "engine.js"

HARNESS = """
const models = new Map();
let room = new ArrayBuffer(0);
const reserve = (bytes) => (room = new ArrayBuffer(bytes));
const plain = (key, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
function tensors(layout) {
  let at = 0;
  return Object.fromEntries(layout.map(([name, shape]) => {
    const size = shape.reduce((a, b) => a * b, 1);
    at += 4 * size;
    return [name, { shape, data: new Float32Array(room.slice(at - 4 * size, at)) }];
  }));
}
function make(name, description, weights, means, extras) {
  const all = tensors([...weights, ...means]);
  const part = (layout) => Object.fromEntries(layout.map(([name]) => [name, all[name]]));
  const baselines = { examples: (extras.examples ?? []).map(given) };
  if (means.length) baselines.means = part(means);
  const answer = (said) => `${extras.words.text} [${said.join(", ")}]`;
  const places = (count) => engine.placesOf(extras.words.places, count);
  const words = extras.words && { ...extras.words, answer, places };
  models.set(name, engine.makeModel(description, part(weights), { ...extras, words, baselines }));
}
const given = (input) => input && input.pixels
  ? { ...input, pixels: { shape: input.pixels.shape, data: Uint8Array.from(input.pixels.data) } } : input;
function ask(name, method, ...values) {
  const [question, ...rest] = values;
  const model = models.get(name);
  if (method === "scene") {
    return model.scene({ ...question, input: given(question.input), other: given(question.other) });
  }
  const found = model[method](given(question), ...rest);
  return found.taps ? { ...found, taps: Object.fromEntries(found.taps.seen) } : found;
}
function call(name, text) {
  try { return JSON.stringify({ value: globals[name](...JSON.parse(text)) ?? null }, plain); }
  catch (error) { return JSON.stringify({ error: error.message }); }
}
const globals = { make, ask };
"""


class EngineError(Exception):
    """What the engine throws."""


class Engine:
    """Models by name in one V8; ``first`` is executed before anything else."""

    def __init__(self, first: str = "") -> None:
        self._v8 = MiniRacer()
        weakref.finalize(self, self._v8.close)  # V8 left open at the end of a process may hang it
        self._v8.eval(f"{first}; 0")
        self._v8.eval(bundle(ENGINE, "engine") + HARNESS + "0")

    def make(
        self,
        name: str,
        description: EngineDescription,
        weights: Mapping[str, Tensor],
        *,
        means: Mapping[str, Tensor] | None = None,
        **extras: Any,
    ) -> "EngineModel":
        """A model of these weights; ``means`` and other ``extras`` are those of ``makeModel``."""
        return self.make_of(name, description.to_json(), weights, means=means, **extras)

    def make_of(
        self,
        name: str,
        described: dict[str, Any],
        weights: Mapping[str, Tensor],
        *,
        means: Mapping[str, Tensor] | None = None,
        **extras: Any,
    ) -> "EngineModel":
        """The same of a description as JSON."""
        known = dict(means or {})
        given = {key: value.detach().float().contiguous() for key, value in {**weights, **known}.items()}
        blob = b"".join(value.numpy().tobytes() for value in given.values())
        room: Any = self._v8.eval(f"reserve({len(blob)})")
        if blob:
            room[:] = blob
        layout = [[key, list(value.shape)] for key, value in given.items()]
        count = len(weights)
        self._call("make", name, described, layout[:count], layout[count:], extras)
        return EngineModel(self, name)

    def ask(self, name: str, method: str, *values: Any) -> Any:
        return self._call("ask", name, method, *values)

    def _call(self, name: str, *values: Any) -> Any:
        text = json.dumps(json.dumps(values))
        found = json.loads(str(self._v8.eval(f"call({name!r}, {text})")))
        if "error" in found:
            raise EngineError(found["error"])
        return found["value"]


class EngineModel:
    """One model of the engine."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self._name = engine, name

    def scene(self, given: Any, **question: Any) -> Any:
        return self._engine.ask(self._name, "scene", {"input": given, **question})

    def answer(self, given: Any, edits: Sequence[Any] = (), other: Any = None) -> list[int]:
        found: list[int] = self._engine.ask(self._name, "answer", given, list(edits), other)
        return found

    def logits(self, given: Any, answer: Sequence[int] = (), edits: Sequence[Any] = ()) -> Tensor:
        return tensor(self._engine.ask(self._name, "logits", given, list(answer), list(edits)))

    def look(self, given: Any, taps: Sequence[str], edits: Sequence[Any] = ()) -> dict[str, Tensor]:
        """Values at taps by their names."""
        found = self._engine.ask(self._name, "look", given, list(taps), list(edits))
        return {name: tensor(value) for name, value in found["taps"].items()}


@cache
def engine() -> Engine:
    """One for all tests of a process."""
    return Engine()


def tensor(values: Any) -> Tensor:
    """Numbers of the engine."""
    return torch.tensor(values["data"], dtype=torch.float32).reshape(values["shape"])


def pixels(image: Tensor) -> dict[str, Any]:
    """An input of bytes (C, H, W) or (H, W)."""
    return {"pixels": {"shape": list(image.shape), "data": image.flatten().tolist()}}
