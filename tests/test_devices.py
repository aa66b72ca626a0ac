"""Names of devices: which are taken, which are refused, and what is done where something is lacking."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import attnlab as front
from attnlab import devices
from attnlab.devices import AUTO, CPU, device_of, find_device, has_fast_bfloat16, place, to_device_of
from attnlab.errors import LabError, SpecError
from attnlab.models import build_for
from attnlab.positions import Positions, build_positions
from attnlab.runs import create_run, rounds_alike
from attnlab.sets import Examples
from attnlab.specs import Interpolated, Rotary, Sinusoidal, from_json, spec_hash, to_json
from attnlab.storage import as_json
from attnlab.training import other_processor, train_run
from attnlab.training.engines import TorchEngine, has_half_products
from attnlab.training.threads import choose_threads
from commands import attnlab
from pretend import PRETENDED, pretending
from tiny import TINY, tiny
from tiny_digits import squares_spec

SOURCE = Path(devices.__file__).parent
META = torch.device("meta")


def test_the_processor_is_the_default() -> None:
    assert find_device(TINY.training.device) == torch.device("cpu")
    assert "device" not in to_json(TINY)["training"]
    assert spec_hash(tiny(device=CPU)) == spec_hash(TINY)
    assert spec_hash(tiny(device="cuda")) != spec_hash(TINY)
    assert from_json(type(TINY), to_json(tiny(device="cuda:1"))).training.device == "cuda:1"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cuda", "torch cannot use it here"),
        ("cuda:7", "torch cannot use it here"),
        ("mps", "torch cannot use it here"),
        ("meta", "torch cannot use it here"),
        ("abacus", "torch knows no such device"),
    ],
)
def test_a_device_that_is_not_there(name: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.zeros

    def refused(*size: int, device: str) -> torch.Tensor:  # also where there is an accelerator
        if device == "meta" or device == "abacus":
            return plain(*size, device=device)
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(torch, "zeros", refused)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    with pytest.raises(LabError, match=f"^device is '{name}', but {reason}; use 'cpu' or 'auto'$"):
        find_device(name)


def test_auto_takes_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: None)
    assert find_device(AUTO) == torch.device("cpu")
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: PRETENDED)
    with pretending():
        assert find_device(AUTO) == PRETENDED
        with pytest.raises(LabError, match=r"use 'cpu' or 'auto' or 'meta'$"):
            find_device("abacus")


@pytest.mark.parametrize("name", ["", "CUDA", "cuda:", "cuda:x", "cuda 1"])
def test_a_name_that_no_device_can_have(name: str) -> None:
    rule = "cpu, auto, or a device of torch such as cuda:1"
    with pytest.raises(SpecError, match=f"^training.device is '{name}', but it must be {rule}$"):
        tiny(device=name)


def test_the_explicit_engine_knows_the_processor_only(tmp_path: Path) -> None:
    spec = replace(squares_spec(tmp_path), engine="explicit")
    rule = r"^training.device is 'auto', but it must be 'cpu' for engine explicit$"
    with pytest.raises(SpecError, match=rule):
        replace(spec, training=replace(spec.training, device=AUTO))


@pytest.mark.parametrize("name", ["abacus", "meta"])
def test_a_command_refuses_before_there_is_a_folder(name: str, tmp_path: Path) -> None:
    words = ("train", "addition", "--training.device", name, "--out", tmp_path / "run")
    done = attnlab(*words, cwd=tmp_path, code=2)
    (line,) = done.stderr.splitlines()
    assert f"device is '{name}', but torch" in line
    assert not (tmp_path / "run").exists()


def test_python_refuses_before_there_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert front.spec("addition", device=AUTO).training.device == AUTO
    with pytest.raises(LabError, match=r"^device is 'abacus', but torch knows no such device"):
        front.train(tiny(device="abacus"))
    assert list(tmp_path.iterdir()) == []


def test_no_other_module_names_a_device() -> None:
    """What needs the CPU, or an accelerator, by its name stands in one module."""
    name = re.compile(r"(cpu|cuda|mps|xpu|meta)(:\d+)?")
    found = {
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Constant) and isinstance(node.value, str) and name.fullmatch(node.value))
        or (isinstance(node, ast.Attribute) and node.attr in ("cuda", "mps", "xpu"))
    }
    assert found == {"devices.py", "cores.py"}  # Linux calls cores so


def test_the_device_of_a_model() -> None:
    model = nn.Linear(3, 5)
    assert device_of(model) == torch.device("cpu")
    assert device_of(nn.Identity()) == torch.device("cpu")
    assert device_of(place(model, META)) == META
    assert [each.device for each in to_device_of(model, torch.ones(2), torch.ones(3))] == [META, META]


def test_examples_go_to_the_device_of_a_model() -> None:
    """Those that are there already stay what they are, with inputs that are still to be made."""
    made: list[int] = []

    def double(part: torch.Tensor) -> tuple[torch.Tensor, ...]:
        made.append(len(part))
        return part * 2, part * 3

    examples = Examples((torch.ones(5, 2),), torch.zeros(5, dtype=torch.long), double)
    assert examples.to(torch.device("cpu")) is examples
    assert made == []
    there = examples[slice(0, 3)].to(META)
    assert made == [3]
    assert [part.shape for part in there.inputs] == [(3, 2), (3, 2)]
    assert {part.device for part in (*there.inputs, there.targets)} == {META}


@pytest.mark.parametrize("spec", [Sinusoidal(), Rotary(), Interpolated(inner="sinusoidal", trained=3)])
def test_a_device_without_wide_numbers(
    spec: Sinusoidal | Rotary | Interpolated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixed frequencies are as wide as they can be; places in them stay near those of the CPU."""

    def vectors(positions: Positions) -> torch.Tensor:
        x = torch.ones(2, 3, 7, 12) if isinstance(spec, Rotary) else torch.zeros(2, 7, 12)
        placed = positions.at(7, x)
        return placed.rotate(x) if isinstance(spec, Rotary) else placed.embed(x)

    wide, narrow = (build_positions(spec, width=12, head_width=12) for _ in range(2))
    expected = vectors(wide)
    monkeypatch.setattr(devices, "_SINGLE", ("cpu",))
    place(narrow, torch.device("cpu"))
    assert {each.dtype for each in wide.buffers()} == {torch.float64}
    assert {each.dtype for each in narrow.buffers()} == {torch.float32}
    monkeypatch.setattr(torch.Tensor, "double", None)
    torch.testing.assert_close(vectors(narrow), expected, atol=1e-5, rtol=1e-5)


def test_half_products_go_by_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    auto = tiny(precision="auto").training
    cuda = torch.device("cuda:0")
    for fast in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, fast=fast: fast)
        assert has_half_products(auto, cuda) is has_fast_bfloat16(cuda) is fast
    assert not has_fast_bfloat16(torch.device("mps"))
    assert has_half_products(tiny(precision="bfloat16").training, torch.device("mps"))


def test_products_are_halved_on_the_device_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(torch, "autocast", lambda *given: asked.append(given))
    model = place(build_for(TINY), META)
    engine = TorchEngine(model, tiny(precision="bfloat16").training)
    engine._precision()
    assert asked == [("meta", torch.bfloat16)]


def test_threads_are_not_measured_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.training.threads.most_threads", lambda: 5)
    monkeypatch.setattr("attnlab.training.threads._fastest", lambda spec: pytest.fail("measured"))
    with pretending():
        assert choose_threads(tiny(device="meta")) == 5


def test_a_run_that_goes_on_elsewhere_says_so(tmp_path: Path) -> None:
    """Numbers round differently on another device."""
    run, left = create_run(tmp_path / "run", TINY), iter(range(100))
    train_run(run, stopping=lambda: next(left) == 4)
    began = run.environment()
    assert rounds_alike(began, replace(began, device="cpu"))
    assert not rounds_alike(began, replace(began, device="cuda:0"))
    run.write({"environment.json": as_json(replace(began, device="cuda:0").to_json())})
    sentence = other_processor(run)
    assert sentence is not None
    assert sentence.endswith("from an unbroken run: device was cuda:0 and is cpu")
