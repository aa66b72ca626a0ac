"""``attnlab gradcheck``: gradients written by hand against autograd and central differences."""

from attnlab.cli.output import print_json, print_table
from attnlab.cli.parsing import Json, Seed
from attnlab.display import say
from attnlab.specs import PatchAttentionModel, SinusoidalStart, require
from attnlab.specs.models import require_patch

EXIT_WRONG = 1


def command(
    *,
    width: int = 16,
    hidden: int = 32,
    patch: int = 4,
    batch: int = 5,
    threads: int = 2,
    entries: int = 200,
    seed: Seed = 0,
    json: Json = False,
) -> int:
    """Compare the hand-written gradients of patch attention with two witnesses, tensor by tensor.

    Example: attnlab gradcheck --width 64 --hidden 128

    Args:
        width: D, the width of a token.
        hidden: Width of the feed-forward layer.
        patch: Pixels along each side of a patch.
        batch: Images.
        threads: Threads of the hand-written network.
        entries: Weights of each tensor that are moved for the central differences.
    """
    for name, value in (("batch", batch), ("threads", threads), ("entries", entries)):
        require(value >= 1, f"--{name}", value, "at least 1")
    positions = SinusoidalStart() if width % 2 == 0 else PatchAttentionModel().positions
    spec = PatchAttentionModel(width=width, hidden=hidden, patch=patch, positions=positions)
    require_patch(patch, 28, 28)
    from attnlab.analysis.gradients import AUTOGRAD_LIMIT, CENTRAL_LIMIT, check_gradients

    found = check_gradients(spec, batch=batch, seed=seed, entries=entries, threads=threads)
    if json:
        print_json(found)
    else:
        print_table(
            f"width {width}, hidden {hidden}, batch {batch}: relative differences",
            ("tensor", "shape", "autograd, float32", "central differences, float64", "weights moved"),
            [
                (
                    row.tensor,
                    " x ".join(map(str, row.shape)),
                    f"{row.autograd:.1e}",
                    f"{row.central:.1e}",
                    f"{row.moved}" + (f", {row.kinks} on a kink" if row.kinks else ""),
                )
                for row in found.tensors
            ],
        )
        limits = f"limits {AUTOGRAD_LIMIT:g} and {CENTRAL_LIMIT:g}"
        say(f"every tensor agrees ({limits})" if found.passes else f"gradients disagree ({limits})")
    return 0 if found.passes else EXIT_WRONG
