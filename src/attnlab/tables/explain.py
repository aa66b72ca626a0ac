"""What ``explain`` finds: of one input the strongest parts, of many how methods are judged."""

from collections.abc import Iterator

from attnlab.analysis import percent
from attnlab.analysis.explain.curves import CONTRAST, CONTROLS, MODES
from attnlab.analysis.explain.methods import OCCLUSION, strongest_heads
from attnlab.analysis.explain.results import Explanation, Judgement, Place
from attnlab.analysis.explain.runs import wrong_words
from attnlab.figures.attribution import draw_explain, draw_explain_many, explain_data
from attnlab.results import Drawing, Estimate, Part, Table

STRONGEST = 3
RHOS = ("rho with\nocclusion", "rho with itself,\nweights shuffled")


def tables(found: Explanation | Judgement) -> Iterator[Part]:
    return _of_one(found) if isinstance(found, Explanation) else _of_many(found)


def figures(found: Explanation | Judgement) -> dict[str, Drawing]:
    if isinstance(found, Explanation):
        return {"explain": Drawing(explain_data(found), draw_explain)}
    return {"explain": Drawing(found, draw_explain_many)}


def _of_one(found: Explanation) -> Iterator[Part]:
    """A table a place: the strongest parts, and how each method is judged; then one of the heads."""
    for place in found.places:
        yield _place(found, place)
    places = found.places
    most = {head: max((each.heads[head] for each in places), key=abs) for head in places[0].heads}
    shown = strongest_heads(most)
    yield Table(
        f"heads: evidence lost without each alone, strongest {len(shown)} of {len(most)}; above 0 it "
        "speaks for the answer",
        ("head", *(each.place for each in places)),
        tuple((head, *(f"{each.heads[head]:+z.2f}" for each in places)) for head in shown),
    )


def _place(found: Explanation, place: Place) -> Table:
    images = found.image is not None
    answer = f"; {place.place} is {place.answer}{wrong_words(place.answer, place.truth)}"
    where = "" if place.place == "class" else answer
    return Table(
        f"{found.input} → {found.output}{wrong_words(found.output, found.truth)}{where} "
        f"(p = {percent(place.probability)}): strongest {'patches' if images else 'tokens'}, rho of ranks, "
        f"areas better than chance ({' / '.join(MODES)})",
        ("method", "strongest", *RHOS, *found.replacements),
        tuple(
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
        ),
    )


def _strongest(parts: list[str], scores: list[float], images: bool) -> str:
    """Parts with the highest scores; tokens with their place, counted from 1."""
    best = sorted(range(len(scores)), key=lambda at: -scores[at])[:STRONGEST]
    return "  ".join(parts[at] if images else f"{parts[at]} (at {at + 1})" for at in best)


def _of_many(found: Judgement) -> Iterator[Part]:
    """Advantages, ranks and the answer."""
    names, gains = [*found.methods, *CONTROLS], found.advantage
    where = f", place {found.place}" if found.place else ""
    for mode in MODES:
        yield Table(
            f"{found.run}, {found.inputs:,} {found.split} inputs{where}, {mode}: area better than "
            "chance, 95% interval",
            ("method", *(f"{replacement} in place" for replacement in found.replacements)),
            tuple(
                (name, *(_cell(gains[name][each][mode], "+z.3f") for each in found.replacements))
                for name in names
            ),
        )
    yield Table(
        f"ranks of parts{where}: Spearman's rho, 95% interval",
        ("method", "with occlusion", "with itself, weights shuffled", "an explanation?"),
        (
            *(
                (
                    name,
                    "-" if name == OCCLUSION else _cell(found.agreement[name][OCCLUSION], "z.2f"),
                    _cell(found.shuffled[name], "z.2f"),
                    found.verdicts[name].answer,
                )
                for name in found.methods
            ),
            (CONTRAST, _cell(found.contrast, "z.2f"), "", "no model asked"),
        ),
    )
    yield found.sentence
    yield f"The rule: {found.rule}."


def _cell(cell: Estimate, form: str) -> str:
    low, high = cell.ends
    return f"{cell.value:{form}} ({low:{form}} to {high:{form}})"
