"""``attnlab gradcheck``: gradients written by hand against autograd and central differences."""

from dataclasses import dataclass

from attnlab.cli.output import print_json, print_table, say
from attnlab.cli.parsing import Seed, parse
from attnlab.spec import PatchAttentionModel, SinusoidalStart, require
from attnlab.spec.images import require_patch

EXIT_WRONG = 1


@dataclass(frozen=True, kw_only=True)
class Options:
    """Compare the hand-written gradients of patch attention with two witnesses, tensor by tensor.

    Example: attnlab gradcheck --width 64 --hidden 128
    """

    width: int = 16
    """D, the width of a token."""
    hidden: int = 32
    """Width of the feed-forward layer."""
    patch: int = 4
    """Pixels along each side of a patch."""
    batch: int = 5
    """Images."""
    threads: int = 2
    """Threads of the hand-written network."""
    entries: int = 200
    """Weights of each tensor that are moved for the central differences."""
    seed: Seed = 0
    json: bool = False
    """Print JSON instead of a table."""

    def __post_init__(self) -> None:
        for name in ("batch", "threads", "entries"):
            require(getattr(self, name) >= 1, f"--{name}", getattr(self, name), "at least 1")


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = parse(Options, arguments, command="gradcheck", default=Options())
    spec = PatchAttentionModel(
        width=options.width,
        hidden=options.hidden,
        patch=options.patch,
        positions=SinusoidalStart() if options.width % 2 == 0 else PatchAttentionModel().positions,
    )
    require_patch(options.patch, 28, 28)
    from attnlab.analysis.gradients import AUTOGRAD_LIMIT, CENTRAL_LIMIT, check_gradients

    found = check_gradients(
        spec, batch=options.batch, seed=options.seed, entries=options.entries, threads=options.threads
    )
    if options.json:
        print_json(found)
    else:
        print_table(
            f"width {options.width}, hidden {options.hidden}, batch {options.batch}: relative differences",
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
