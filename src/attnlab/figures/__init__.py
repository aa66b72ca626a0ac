"""Figures: for each a data function, tested by value, and a drawing function."""

from attnlab.figures.attention import draw_head_examples, draw_patterns, head_examples_data, patterns_data
from attnlab.figures.calibration import draw_reliability, reliability_data
from attnlab.figures.curves import curves_data, draw_curves
from attnlab.figures.digits import (
    confusion_data,
    draw_confusion,
    draw_gaze,
    draw_probes,
    gaze_data,
    probes_data,
)
from attnlab.figures.files import write_figure
from attnlab.figures.heads import draw_heads, heads_data
from attnlab.figures.mistakes import draw_mistakes, mistakes_data
from attnlab.figures.patches import (
    draw_head_images,
    draw_patch_patterns,
    head_images_data,
    patch_patterns_data,
)
from attnlab.figures.pruning import draw_pruning, pruning_data
from attnlab.figures.seeds import draw_seeds, seeds_data
from attnlab.figures.style import to_png, to_svg
from attnlab.figures.sweeps import (
    draw_history,
    draw_importance,
    draw_parallel,
    history_data,
    importance_data,
    parallel_data,
)

__all__ = [
    "confusion_data",
    "curves_data",
    "draw_confusion",
    "draw_curves",
    "draw_gaze",
    "draw_head_examples",
    "draw_head_images",
    "draw_heads",
    "draw_history",
    "draw_importance",
    "draw_mistakes",
    "draw_parallel",
    "draw_patch_patterns",
    "draw_patterns",
    "draw_probes",
    "draw_pruning",
    "draw_reliability",
    "draw_seeds",
    "gaze_data",
    "head_examples_data",
    "head_images_data",
    "heads_data",
    "history_data",
    "importance_data",
    "mistakes_data",
    "parallel_data",
    "patch_patterns_data",
    "patterns_data",
    "probes_data",
    "pruning_data",
    "reliability_data",
    "seeds_data",
    "to_png",
    "to_svg",
    "write_figure",
]
