"""Figures of runs that read images: maps of attention, and projections."""

from dataclasses import replace
from statistics import fmean

import torch

from attnlab.analysis import percent
from attnlab.analysis.choices import MapView, ProjectionMethod
from attnlab.analysis.image_classifier import ImageClassifier
from attnlab.analysis.maps import PatchMap, Watched, default_view, maps_of, watch
from attnlab.analysis.mistakes import ImageMistake
from attnlab.analysis.project.projection import project_run
from attnlab.analysis.samples import Sample, first_samples, samples_at
from attnlab.analysis.statistics import two_places
from attnlab.errors import LabError
from attnlab.figures import projections as of
from attnlab.figures.maps import ROOT, MappedImage, draw_maps, maps_data, scale_end
from attnlab.figures.parts import in_grey
from attnlab.report.live import live_points
from attnlab.report.page import Figure, Section, figure
from attnlab.runs import RunFolder

MOST = 40
"""Maps of a figure in which each head has one; else the mean of heads is drawn."""
INK = 0.15
"""Mean ink of a patch, from 0 to 1, from which it counts as part of a digit; not for whole digits."""
DRAWN = 2000
"""Points of a figure at most, since each takes about 900 bytes of the page."""
METHODS: tuple[ProjectionMethod, ...] = ("tsne", "pca-hdbscan")

WORDS = {
    "received": "what each patch receives, the mean over all tokens, itself among them",
    "cls": "where the token in front, which is read out, looks",
    "digits": "where the decoder looks while it says each digit",
    "rollout": "what each patch gives to the answer if attention is followed through all layers",
}


def maps_section(reader: ImageClassifier, worst: list[ImageMistake]) -> Section | None:
    """The first test image and the most confident mistake, head by head and through all layers.

    A view for which no attention is left is left out; None if that goes for both.
    """
    samples = _samples(reader, worst)
    seen = [watch(reader, sample) for sample in samples]
    view = default_view(seen[0])
    words = [
        "Weights are multiples of even attention: 1 is what every patch would get if all got the same."
    ]
    every = [_maps(view, samples, seen), _maps("rollout", samples, seen)]
    figures = [each for each in every if each is not None]
    return Section("maps", "Where its attention goes", words, figures) if figures else None


def _samples(reader: ImageClassifier, worst: list[ImageMistake]) -> list[Sample]:
    samples = first_samples(reader, split="test", count=1)
    place = int(worst[0].input.partition(":")[2]) if worst else 0
    if place:
        samples += samples_at(reader, "test", torch.tensor([place]))
    return samples


def _maps(view: MapView, samples: list[Sample], seen: list[Watched]) -> Figure | None:
    title = "Rollout" if view == "rollout" else "Attention, head by head"
    try:
        found = [maps_of(each, view, heads="each") for each in seen]
    except LabError:  # pruning left no attention for this view
        return None
    if view != "rollout" and sum(len(row) for rows in found for row in rows) > MOST:
        title, found = "Attention, the mean of heads", [maps_of(each, view, heads="mean") for each in seen]
    data = maps_data(view, list(zip(samples, found, strict=True)))
    names = ", ".join(f"{sample.name} read as {sample.output}" for sample in samples)
    reading = f"{names}: {WORDS[view]}. {sharpness(data.images)}"
    return figure(f"maps-{view}", title, data, draw_maps, reading, map_signs(data.images))


def sharpness(images: list[MappedImage]) -> str:
    """The highest weight and the sharpest map; a map of one patch is neither even nor sharp."""
    every = [each for image in images for row in image.rows for each in row]
    end = scale_end(images)
    root = ", and colours follow the square root of weights" if end > ROOT else ""
    told = (
        f"All maps have one scale, from 0 to {end:.3g} times even attention{root}. The highest weight is "
        f"{max(each.peak for each in every):.1f} times even"
    )
    shares = [(each.evenness, each.map) for each in every if each.evenness is not None]
    if not shares:
        return f"{told}."
    share, sharp = min(shares)
    return f"{told}; the sharpest map is {sharp}, with {100 * share:.0f}% of the entropy of an even one."


def map_signs(images: list[MappedImage]) -> str:
    """Good and bad signs: weight on the digit that is being said, where it is known; else weight on ink."""
    every = [(image, each) for image in images for row in image.rows for each in row]
    own = [each.on_digit for _, each in every if each.on_digit is not None]
    if own:
        return (
            "Good: weight on the digit that is being said. Bad: one even colour, or weight on others. "
            f"Here the digit that is being said gets {percent(fmean(own))} of the weight of its maps, "
            f"where an even map gives it {percent(1 / images[0].cells)}."
        )
    if images[0].cells == sum(map(len, every[0][1].weights)):  # a patch is all of a digit
        known = [value for _, each in every for row in each.weights for value in row]
        return (
            "Good: weights that differ, which are a choice. Bad: one even colour. Here they go from "
            f"{min(known):.1f} to {max(known):.1f} times even attention."
        )
    on, area = _on_ink(every)
    return (
        "Good: weight on the strokes that distinguish this digit from others. Bad: one even colour, or "
        f"weight on empty paper. Here patches with ink are {percent(area)} of the image and get "
        f"{percent(on)} of the weight of all maps{_lean(on, area)}."
    )


def _lean(on: float, area: float) -> str:
    if on > 1.1 * area:
        return ", more than their share"
    return ", less than their share" if on < 0.9 * area else ", which is their share"


def _on_ink(every: list[tuple[MappedImage, PatchMap]]) -> tuple[float, float]:
    """The share of weight on patches with ink, and the share of such patches, over all maps."""
    weight, total, inked, patches = 0.0, 0.0, 0, 0
    for image, each in every:
        weights = torch.tensor(each.weights)
        ink = torch.tensor(in_grey(image.pixels), dtype=torch.float32) / 255
        rows, columns = weights.shape
        ink = ink.reshape(rows, len(ink) // rows, columns, -1).mean(dim=(1, 3)) > INK
        weight += weights[ink].sum().item()
        total += weights.sum().item()
        inked += int(ink.sum())
        patches += ink.numel()
    return weight / max(total, 1e-9), inked / max(1, patches)


def projections_section(run: RunFolder, samples: int) -> Section:
    """What the readout sees of many digits, by t-SNE and by principal components."""
    found = [project_run(run, method=method, samples=samples) for method in METHODS]
    data, points = of.thinned(of.projections_data(found), [each.cloud for each in found], DRAWN)
    first, second = data.runs
    word, words = of.label_word(first), of.label_words(first)
    images = "digits" if word == "digit" else "examples"
    drawn = f" ({len(first.x):,} of them drawn)" if len(first.x) < first.points else ""
    reading = (
        f"What the readout sees ({first.tap}) of {first.points:,} test {images}, as points"
        f"{drawn}; above: the true {word}, below: the cluster that was found without knowing it. "
        f"Left t-SNE, which keeps neighbours (trustworthiness {first.trustworthiness:.2f}; distances "
        "between groups mean nothing), right the first two principal components, with "
        f"{percent(second.explained_variance)} of the variance; × is noise."
    )
    silhouette = "none" if first.silhouette is None else f"{first.silhouette:.2f}"
    signs = (
        f"Good: a group for each {word}, at the same place above and below; ARI and purity near 1. Bad: "
        f"{words} mixed all over, silhouette 0 or less. Here the silhouette of the {words} is {silhouette} "
        f"(before any picture), K-means agrees with them with ARI {two_places(first.ari)} and purity "
        f"{two_places(first.purity)}, and HDBSCAN finds {second.clusters} clusters."
    )
    picture = figure(
        "projections", f"{words.capitalize()} as points", data, of.draw_projections, reading, signs
    )
    live = replace(picture, live=live_points(data, points))
    return Section("projections", f"How it sorts {words}", figures=[live])
