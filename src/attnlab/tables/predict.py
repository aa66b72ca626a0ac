"""The answer about one image."""

from attnlab.analysis.samples import ImagePrediction
from attnlab.figures.samples import draw_samples, samples_data
from attnlab.results import Drawing, Part, records_table


def tables(found: ImagePrediction) -> list[Part]:
    return [records_table(found.input, found.records())]


def figures(found: ImagePrediction) -> dict[str, Drawing]:
    return {} if found.sample is None else {"image": Drawing(samples_data([found.sample]), draw_samples)}
