"""Hand-written gradients against autograd, against central differences, and against planted faults."""

import math
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnlab.errors import LabError
from attnlab.explicit import Gradients, Network, Parameters
from attnlab.explicit.arrays import NAMES
from attnlab.explicit.compiling import Array, kernel
from attnlab.explicit.products import add_product, padded
from attnlab.explicit.softmax import exponential
from attnlab.explicit.workers import share

CLASSES = 10
SIZES = [(4, 5, 7, 1), (4, 5, 7, 3), (4, 16, 32, 32), (7, 11, 13, 2), (4, 67, 19, 2)]  # patch, D, F, B


def make_parameters(
    patch: int, width: int, hidden: int, dtype: type = np.float32, seed: int = 0
) -> Parameters:
    """Large enough that patterns are far from uniform and every part of the model matters."""
    draw = np.random.default_rng(seed)
    tokens, pixels = (28 // patch) ** 2, patch**2
    shapes: dict[str, tuple[int, ...]] = {"positions": (tokens, width)}
    for name, out, into in [
        ("embed", width, pixels),
        ("query", width, width),
        ("key", width, width),
        ("value", width, width),
        ("expand", hidden, width),
        ("contract", width, hidden),
        ("readout", CLASSES, width),
    ]:
        shapes |= {f"{name}_weight": (out, into), f"{name}_bias": (out,)}
    arrays: dict[str, Array] = {
        field: (draw.normal(size=shape) * (1.5 / math.sqrt(shape[-1]) if len(shape) == 2 else 0.3)).astype(
            dtype
        )
        for field, shape in shapes.items()
    }
    arrays["query_weight"] *= 3
    return Parameters(**arrays)


def make_batch(count: int, dtype: type = np.float32, seed: int = 1) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    return draw.random((count, 28, 28)).astype(dtype), draw.integers(0, CLASSES, count)


def torch_logits(own: dict[str, Tensor], images: Tensor) -> Tensor:
    """The model as its formulas stand."""
    patch = math.isqrt(own["embed_weight"].shape[1])
    patches = F.unfold(images[:, None], patch, stride=patch).transpose(1, 2)
    tokens = F.relu(F.linear(patches, own["embed_weight"], own["embed_bias"]) + own["positions"])
    q, k, v = (F.linear(tokens, own[f"{n}_weight"], own[f"{n}_bias"]) for n in ("query", "key", "value"))
    pattern = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
    hidden = F.relu(F.linear(pattern @ v, own["expand_weight"], own["expand_bias"]))
    pooled = F.linear(hidden, own["contract_weight"], own["contract_bias"]).mean(1)
    return F.linear(pooled, own["readout_weight"], own["readout_bias"])


def autograd(parameters: Parameters, images: Array, labels: Array) -> tuple[float, int, Gradients]:
    own = {name: torch.tensor(array, requires_grad=True) for name, array in parameters._asdict().items()}
    logits = torch_logits(own, torch.tensor(images))
    loss = F.cross_entropy(logits, torch.tensor(labels))
    loss.backward()  # type: ignore[no-untyped-call]
    right = int((logits.argmax(1) == torch.tensor(labels)).sum())
    return (
        loss.item(),
        right,
        Gradients(*(tensor.grad.numpy() for tensor in own.values() if tensor.grad is not None)),
    )


def worst(found: Gradients, expected: Gradients) -> dict[str, float]:
    """Largest difference over largest expected value, tensor by tensor.

    The key's bias has gradient 0; what autograd gives is rounding, and is measured against the query's.
    """
    scale = {name: float(np.abs(array).max()) for name, array in expected._asdict().items()}
    scale["key_bias"] = scale["query_bias"]
    return {
        name: float(np.abs(array - getattr(expected, name)).max()) / scale[name]
        for name, array in found._asdict().items()
    }


def run_python(code: str) -> list[str]:
    """The words that another process prints."""
    command, here = [sys.executable, "-c", code], Path(__file__).parent
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout.split()


def copied(parameters: Parameters) -> Parameters:
    return Parameters(*(array.copy() for array in parameters))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("patch", "width", "hidden", "count"), SIZES)
def test_gradients_are_those_of_autograd(
    patch: int, width: int, hidden: int, count: int, threads: int
) -> None:
    parameters, (images, labels) = make_parameters(patch, width, hidden), make_batch(count)
    loss, right, gradients = Network(parameters, threads=threads).gradients(images, labels)
    expected_loss, expected_right, expected = autograd(parameters, images, labels)
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    assert right == expected_right
    assert max(worst(gradients, expected).values()) <= 1e-5


def differences(parameters: Parameters, images: Array, labels: Array, step: float = 1e-7) -> Gradients:
    """(loss(x + step) - loss(x - step)) / (2 step) for some elements of every tensor, NaN elsewhere."""
    network, moved = Network(parameters, threads=1), parameters
    found = Gradients(*(np.full_like(array, np.nan) for array in parameters))
    draw = np.random.default_rng(2)
    for array, gradient in zip(moved, found, strict=True):
        for place in draw.choice(array.size, min(array.size, 12), replace=False):
            where = np.unravel_index(place, array.shape)
            kept, losses = array[where], []
            for sign in (1, -1):
                array[where] = kept + sign * step
                losses.append(network.gradients(images, labels)[0])
            array[where] = kept
            gradient[where] = (losses[0] - losses[1]) / (2 * step)
    return found


@pytest.mark.parametrize(("patch", "width", "hidden", "count"), SIZES)
def test_gradients_are_central_differences(patch: int, width: int, hidden: int, count: int) -> None:
    parameters = make_parameters(patch, width, hidden, np.float64)
    images, labels = make_batch(count, np.float64)
    _, _, gradients = Network(parameters, threads=2).gradients(images, labels)
    expected = differences(parameters, images, labels)
    for name, array in expected._asdict().items():
        seen = ~np.isnan(array)
        assert seen.sum() >= 5
        assert np.abs(array[seen] - getattr(gradients, name)[seen]).max() <= 1e-7, name
    assert not gradients.key_bias.any()


def test_float64_agrees_with_autograd_to_its_own_rounding() -> None:
    parameters, (images, labels) = make_parameters(4, 16, 32, np.float64), make_batch(5, np.float64)
    loss, _, gradients = Network(parameters, threads=2).gradients(images, labels)
    expected_loss, _, expected = autograd(parameters, images, labels)
    assert loss == pytest.approx(expected_loss, rel=1e-13)
    assert max(worst(gradients, expected).values()) <= 1e-12


@pytest.mark.parametrize("name", Gradients._fields)
def test_the_comparison_finds_a_fault_in_any_gradient(name: str) -> None:
    parameters, (images, labels) = make_parameters(4, 5, 7), make_batch(3)
    _, _, gradients = Network(parameters, threads=1).gradients(images, labels)
    expected = autograd(parameters, images, labels)[2]
    faulty = getattr(gradients, name).copy()
    faulty.flat[-1] += 1e-4 * np.abs(expected.query_bias if name == "key_bias" else faulty).max()
    found = worst(gradients._replace(**{name: faulty}), expected)
    assert [field for field, error in found.items() if error > 1e-5] == [name]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_every_time(threads: int) -> None:
    images, labels = make_batch(11)
    seen = set()
    for _ in range(5):
        parameters = make_parameters(4, 16, 32)
        network = Network(parameters, threads=threads)
        results = [network.step(images, labels, 0.1) for _ in range(3)]
        seen.add((tuple(results), *(array.tobytes() for array in parameters)))
    assert len(seen) == 1


def test_bits_do_not_depend_on_who_slept() -> None:
    """Helpers that watch for work, helpers that must be woken, helpers that another network had."""
    batch, ends = make_batch(11), []
    for pause, company in ((0.0, False), (0.005, False), (0.0, True)):
        parameters = make_parameters(4, 16, 32)
        network, other = Network(parameters, threads=2), Network(make_parameters(4, 5, 7), threads=2)
        for _ in range(8):
            network.step(*batch, 0.1)
            time.sleep(pause)
            if company:
                other.step(*batch, 0.1)
                network.logits(batch[0])
        ends.append([array.tobytes() for array in parameters])
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("planted", [0, 1])
def test_an_error_in_a_helper_is_raised_here(planted: int) -> None:
    done: list[int] = []

    def work(worker: int) -> None:
        done.append(worker)
        if worker == planted:
            raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        share(work, 3)
    assert sorted(done) == [0, 1, 2]


def test_a_forked_process_gets_helpers_of_its_own() -> None:
    code = (
        "import os\n"
        "from test_explicit import Network, make_batch, make_parameters\n"
        "network, batch = Network(make_parameters(4, 16, 32), threads=2), make_batch(5)\n"
        "loss = network.gradients(*batch)[0]\n"
        "if os.fork():\n"
        "    print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "else:\n"
        "    os._exit(0 if network.gradients(*batch)[0] == loss else 1)"
    )
    assert run_python(code) == ["0"]


def test_a_step_is_parameter_minus_rate_times_gradient() -> None:
    parameters, (images, labels) = make_parameters(4, 5, 7, np.float64), make_batch(3, np.float64)
    network, before = Network(parameters, threads=2), copied(parameters)
    loss, right, gradients = network.gradients(images, labels)
    for array, kept in zip(parameters, before, strict=True):
        np.testing.assert_array_equal(array, kept)
    assert network.step(images, labels, 0.3) == (loss, right)
    for array, kept, gradient in zip(parameters, before, gradients, strict=True):
        np.testing.assert_allclose(array, kept - 0.3 * gradient, rtol=0, atol=1e-15)


def test_batches_of_any_size_follow_each_other() -> None:
    """Nothing of a large batch remains in a smaller one after it, as at the end of an epoch."""
    parameters, (images, labels) = make_parameters(4, 5, 7), make_batch(32)
    network = Network(parameters, threads=2)
    network.gradients(images, labels)
    for count in (5, 1, 32):
        found = network.gradients(images[:count], labels[:count])
        fresh = Network(parameters, threads=2).gradients(images[:count], labels[:count])
        assert found[:2] == fresh[:2]
        for one, other in zip(found[2], fresh[2], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("count", [0, 1, 101])
def test_logits_of_any_number_of_images(count: int) -> None:
    parameters, (images, _) = make_parameters(4, 16, 32), make_batch(count)
    own = {name: torch.tensor(array) for name, array in parameters._asdict().items()}
    expected = torch_logits(own, torch.tensor(images)).numpy()
    found = Network(parameters, threads=2).logits(images)
    assert found.shape == (count, CLASSES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_parameters_of_a_torch_module_change_in_place() -> None:
    tensors = {
        NAMES[field]: torch.tensor(array) for field, array in make_parameters(4, 5, 7)._asdict().items()
    }
    network = Network({name: tensor.numpy() for name, tensor in tensors.items()}, threads=1)
    before = tensors["encoder.0.self.query.weight"].clone()
    network.step(*make_batch(3), 0.1)
    assert not torch.equal(tensors["encoder.0.self.query.weight"], before)


def test_training_learns_the_batch() -> None:
    images, labels = make_batch(8)
    network = Network(make_parameters(4, 16, 32), threads=2)
    losses = [network.step(images, labels, 0.1)[0] for _ in range(400)]
    assert losses[-1] < 0.05 < 1 < losses[0]


def test_nan_is_not_hidden() -> None:
    parameters, (images, labels) = make_parameters(4, 5, 7), make_batch(3)
    parameters.query_weight[0, 0] = np.nan
    assert math.isnan(Network(parameters, threads=2).step(images, labels, 0.1)[0])


ROUNDS = 20


def test_memory_stays_flat() -> None:
    """First rounds may fill Python's own stores, how many depends on its version; a leak grows in each."""
    images, labels = make_batch(32)
    network = Network(make_parameters(4, 16, 32), threads=2)
    status = Path("/proc/self/statm")

    def resident() -> int:
        return int(status.read_text().split()[1]) * 4096 if status.exists() else 0

    tracemalloc.start()
    kept, pages = [], []
    for _ in range(ROUNDS):
        for _ in range(200):
            network.step(images, labels, 0.01)
        kept.append(tracemalloc.get_traced_memory()[0])
        pages.append(resident())
        if len(kept) > 3 and min(np.diff(kept)) < 5000 and min(np.diff(pages)) < 2**16:
            break
    tracemalloc.stop()
    assert len(kept) < ROUNDS, kept


@pytest.mark.slow
def test_a_second_process_compiles_nothing() -> None:
    code = (
        "import numpy as np\n"
        "from test_explicit import make_batch, make_parameters\n"
        "from attnlab.explicit import Network\n"
        "from attnlab.explicit.passes import learn\n"
        "Network(make_parameters(4, 16, 32), threads=2).step(*make_batch(3), 0.1)\n"
        "print(sum(learn.stats.cache_hits.values()), sum(learn.stats.cache_misses.values()))"
    )
    run_python(code)
    assert run_python(code) == ["1", "0"]


@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(1, 1, 1), (7, 5, 3), (49, 49, 64), (13, 150, 0), (64, 128, 49)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products(rows: int, columns: int, depth: int, dtype: type) -> None:
    draw = np.random.default_rng(0)
    right: Array = np.zeros((depth, padded(columns, np.dtype(dtype).itemsize)), dtype)
    right[:, :columns] = draw.integers(-9, 9, (depth, columns))
    out: Array = draw.integers(-9, 9, (rows, right.shape[1])).astype(dtype)
    lefts: list[Array] = [np.empty((rows, depth), dtype), np.empty((depth, rows), dtype).T]
    for left in lefts:
        left[:] = draw.integers(-9, 9, left.shape)
        expected = out + left @ right
        add_product(out, left, right)
        np.testing.assert_array_equal(out, expected)


@kernel
def _exponentials(x: Array, out: Array) -> None:
    for n in range(len(x)):
        out[n] = exponential(x[n])


def test_exponential_is_as_exact_as_its_type() -> None:
    for dtype, bound in ((np.float32, 1e-7), (np.float64, 1e-15)):
        x = np.linspace(-87, 88, 100_003).astype(dtype)
        found = np.empty_like(x)
        _exponentials(x, found)
        exact = np.exp(x.astype(np.longdouble))
        assert np.abs(found / exact - 1).max() <= bound
    assert exponential(0.0) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"key_weight": np.zeros((5, 4), np.float32)},
            r"'encoder.0.self.key.weight' is float32 \(5, 4\).*\(5, 5\)",
        ),
        ({"readout_bias": np.zeros(10)}, "'readout.bias' is float64"),
        (
            {"embed_weight": np.zeros((5, 16), np.float32, order="F")},
            "'embed.linear.weight'.*be contiguous",
        ),
        ({"embed_weight": np.zeros((5, 15), np.float32)}, "49 tokens of 15 pixels make no square image"),
        ({"positions": np.zeros((48, 5), np.float32)}, "48 tokens of 16 pixels make no square image"),
        ({"positions": np.zeros((49, 5), np.int32)}, "parameters are int32"),
    ],
)
def test_parameters_that_do_not_fit(change: dict[str, Array], message: str) -> None:
    with pytest.raises(LabError, match=message):
        Network(make_parameters(4, 5, 7)._replace(**change), threads=1)


def test_a_missing_parameter() -> None:
    with pytest.raises(LabError, match=r"parameter 'embed.linear.bias' is missing"):
        Network({}, threads=1)


def test_no_threads() -> None:
    with pytest.raises(LabError, match="threads is 0"):
        Network(make_parameters(4, 5, 7), threads=0)


def test_batches_that_do_not_fit() -> None:
    network, (images, labels) = Network(make_parameters(4, 5, 7), threads=1), make_batch(3)
    with pytest.raises(LabError, match=r"images are float64 \(3, 28, 28\)"):
        network.step(images.astype(np.float64), labels, 0.1)
    with pytest.raises(LabError, match=r"images are float32 \(3, 27, 28\)"):
        network.logits(np.ascontiguousarray(images[:, 1:]))
    with pytest.raises(LabError, match=r"labels are int32 \(3,\)"):
        network.step(images, labels.astype(np.int32), 0.1)
    with pytest.raises(LabError, match="one int64 for each of 0 images"):
        network.step(images[:0], labels[:0], 0.1)
    with pytest.raises(LabError, match="labels go from -1 to 10; classes go from 0 to 9"):
        network.step(images, np.array([3, -1, 10]), 0.1)
