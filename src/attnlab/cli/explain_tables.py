"""What ``attnlab explain`` prints: of one input the strongest parts, of many how methods are judged."""

from attnlab.analysis import percent
from attnlab.analysis.explain.curves import CONTRAST, CONTROLS, MODES
from attnlab.analysis.explain.methods import OCCLUSION, strongest_heads
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.explain.runs import wrong_words
from attnlab.cli.output import print_table
from attnlab.results import Estimate

STRONGEST = 3
RHOS = ("rho with\nocclusion", "rho with itself,\nweights shuffled")


def show_one(found: Explanation) -> None:
    """A table a place: the strongest parts, and how each method is judged; then one of the heads."""
    images = found.image is not None
    wrong = wrong_words(found.output, found.truth)
    for place in found.places:
        answer = f"; {place.place} is {place.answer}{wrong_words(place.answer, place.truth)}"
        where = "" if place.place == "class" else answer
        print_table(
            f"{found.input} → {found.output}{wrong}{where} (p = {percent(place.probability)}): "
            f"strongest {'patches' if images else 'tokens'}, rho of ranks, areas better than chance "
            f"({' / '.join(MODES)})",
            ("method", "strongest", *RHOS, *found.replacements),
            [
                (
                    name,
                    _strongest(found.parts, scores, images),
                    "-" if name == OCCLUSION else f"{place.agreement[name][OCCLUSION].value:z.2f}",
                    f"{place.shuffled[name].value:z.2f}",
                    *(
                        " / ".join(f"{place.advantage[name][each][mode]:+z.3f}" for mode in MODES)
                        for each in found.replacements
                    ),
                )
                for name, scores in place.scores.items()
            ],
        )
    places = found.places
    most = {head: max((each.heads[head] for each in places), key=abs) for head in places[0].heads}
    shown = strongest_heads(most)
    print_table(
        f"heads: evidence lost without each alone, strongest {len(shown)} of {len(most)}; above 0 it "
        "speaks for the answer",
        ("head", *(each.place for each in places)),
        [(head, *(f"{each.heads[head]:+z.2f}" for each in places)) for head in shown],
    )


def _strongest(parts: list[str], scores: list[float], images: bool) -> str:
    """Parts with the highest scores; tokens with their place, counted from 1."""
    best = sorted(range(len(scores)), key=lambda at: -scores[at])[:STRONGEST]
    return "  ".join(parts[at] if images else f"{parts[at]} (at {at + 1})" for at in best)


def show_many(found: Judgement) -> None:
    """Advantages, ranks and the answer."""
    names, gains = [*found.methods, *CONTROLS], found.advantage
    where = f", place {found.place}" if found.place else ""
    for mode in MODES:
        print_table(
            f"{found.run}, {found.inputs:,} {found.split} inputs{where}, {mode}: area better than "
            "chance, 95% interval",
            ("method", *(f"{replacement} in place" for replacement in found.replacements)),
            [
                (name, *(_cell(gains[name][each][mode], "+z.3f") for each in found.replacements))
                for name in names
            ],
        )
    print_table(
        f"ranks of parts{where}: Spearman's rho, 95% interval",
        ("method", "with occlusion", "with itself, weights shuffled", "an explanation?"),
        [
            (
                name,
                "-" if name == OCCLUSION else _cell(found.agreement[name][OCCLUSION], "z.2f"),
                _cell(found.shuffled[name], "z.2f"),
                found.verdicts[name].answer,
            )
            for name in found.methods
        ]
        + [(CONTRAST, _cell(found.contrast, "z.2f"), "", "no model asked")],
    )
    print(found.sentence)
    print(f"The rule: {found.rule}.")


def _cell(cell: Estimate, form: str) -> str:
    low, high = cell.ends
    return f"{cell.value:{form}} ({low:{form}} to {high:{form}})"
