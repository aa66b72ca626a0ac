"""Why a model gave one answer: six methods side by side, and how far to believe them."""

import torch

from attnlab.analysis.explain.asking import explain_asked
from attnlab.analysis.explain.curves import MANY, MODES
from attnlab.analysis.explain.methods import ATTENTION, OCCLUSION
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.explain.runs import explainable, kept_name, open_explained, wrong_words
from attnlab.figures.attribution import draw_explain, draw_explain_many, explain_data
from attnlab.report.page import Figure, Section, figure
from attnlab.runs import RunFolder


def reasons_section(run: RunFolder, text: str) -> Section | None:
    """One answer, at the place that is least sure, and what many inputs said if that is kept."""
    if not explainable(run):
        return None
    figures = [_one(run, text)]
    many = run.kept(kept_name("test"), Judgement)
    if many is not None:
        figures.append(_many(many))
    words = [
        "Where a head looks is not yet what an answer is attributed to. Here parts of the input are really "
        "taken away, and methods that only look are compared with that.",
    ]
    if many is None and not run.shipped:
        words.append(
            f"'attnlab explain {run.called} --many 200' judges the methods on many inputs; a page that "
            "is written after it shows that too."
        )
    return Section("reasons", "Why it answers so", words, figures)


def explain_one(run: RunFolder, text: str) -> Explanation:
    """``explain_run`` at the one place of the answer that is least sure, with less effort for chance."""
    opened = open_explained(run)
    asked = opened.read(text)
    with torch.no_grad():
        sure = {place: each.evidence(each.parts[None]).item() for place, each in asked.questions.items()}
    unsure = min(sure, key=sure.__getitem__)
    return explain_asked(asked, opened.model, opened.background, unsure, name=run.name, effort=MANY)


def _one(run: RunFolder, text: str) -> Figure:
    found = explain_one(run, text)
    (place,) = found.places
    data = explain_data(found)
    images = found.image is not None
    what, every = ("patch", "patches") if images else ("token", "tokens")
    where = "the answer" if place.place == "class" else f"place {place.place}"
    reading = (
        f"{found.input}, answered with {found.output}{wrong_words(found.output, found.truth)}: "
        f"how much each {what} speaks for {where} being {place.answer} (p = "
        f"{place.probability:.3f}), by each method, divided by its largest score. "
        f"{most_missed(found.parts, place.scores[OCCLUSION], images=images)} Bars are "
        "what is lost without single heads. Below, how far the ranks of methods agree with each other, and "
        f"with themselves when weights are shuffled, and how fast the answer goes as {every} go, or comes "
        "as they come."
    )
    rho = place.agreement[ATTENTION][OCCLUSION].value
    gains = [place.advantage[ATTENTION][each][mode] for each in found.replacements for mode in MODES]
    beats = sum(gain > 0 for gain in gains)
    signs = (
        "Good: rho with occlusion near 1, deletion curves far below chance and insertion curves far "
        "above. Bad: rho near 0 and curves inside the grey band, which is an order by lot. Here raw "
        f"attention ranks {every} as occlusion does with rho {rho:.2f} and is better than chance in "
        f"{beats} of {len(gains)} curves; one input alone proves little."
    )
    return figure("reasons", "What one answer is attributed to", data, draw_explain, reading, signs)


def most_missed(parts: list[str], scores: list[float], *, images: bool) -> str:
    """The part without which the answer is least sure, if it is less sure without any."""
    most = max(range(len(scores)), key=scores.__getitem__)
    if scores[most] <= 0:
        return (
            f"Whichever {'patch' if images else 'token'} is taken away alone, the answer is no less sure."
        )
    part = f"patch {parts[most]}" if images else f"token {parts[most]} (at {most + 1})"
    return f"When {'patches' if images else 'tokens'} are taken away one by one, {part} is missed most."


def _many(found: Judgement) -> Figure:
    reading = (
        f"Over {found.inputs:,} {found.split} inputs, above: how much better than chance the order "
        "of each method is, with 95% intervals; below: how far methods agree, and whether they notice "
        "that weights were shuffled."
    )
    signs = (
        "Good: an order that beats chance with every replacement, ranks parts as occlusion does, and "
        "changes with the weights. Bad: marks at 0, or ranks that stay when weights are shuffled, since "
        f"then the model was not asked. Here: {found.sentence}"
    )
    return figure(
        "explanation", "Is attention an explanation here?", found, draw_explain_many, reading, signs
    )
