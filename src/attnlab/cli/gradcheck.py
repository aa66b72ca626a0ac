"""``attnlab gradcheck``: gradients written by hand against autograd and central differences."""

from attnlab.cli.output import print_result
from attnlab.cli.parsing import Json, Seed
from attnlab.front.gradients import gradcheck

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
    found = gradcheck(
        width=width,
        hidden=hidden,
        patch=patch,
        batch=batch,
        threads=threads,
        entries=entries,
        seed=seed,
    )
    print_result(found, json=json)
    return 0 if found.passes else EXIT_WRONG
