"""The page of a projection in a real browser: it reacts to pointer and keys, without a complaint."""

from pathlib import Path

import numpy as np
import pytest
import torch

from attnlab.analysis.project.points import Points
from attnlab.analysis.project.projection import Projected, ProjectedRun, Projections, scores
from attnlab.report.live import projection_page
from browser import Tab

pytestmark = pytest.mark.slow

PROBE = """(() => {
const said = [], corner = panels[1].canvas.getBoundingClientRect(), [x, y] = panels[1].at[2];
const where = {clientX: corner.left + x, clientY: corner.top + y, pointerType: "mouse"};
panels[1].canvas.dispatchEvent(new PointerEvent("pointermove", where));
said.push(words.textContent, digit.style.backgroundPosition, String(card.hidden));
panels[0].canvas.focus();
panels[0].chosen = 0;
panels[0].canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
said.push(told.textContent);
panels[0].canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
said.push(String(card.hidden));
return said;
})()"""


def page() -> str:
    """Four digits of which two stand in a cluster, at the corners of a square."""
    xy = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = Projected(xy, np.array([0, 0, -1, -1]), [0.5, 0.5])
    labels = torch.tensor([3, 7, 7, 1])
    points = Points(
        torch.from_numpy(xy),
        labels,
        torch.arange(4),
        torch.tensor([-1, -1, 5, -1]),
        4,
        torch.zeros(4, 28, 28, dtype=torch.uint8),
        [f"test:{place}" for place in range(4)],
        16,
    )
    run = ProjectedRun(
        run="<made up>",
        tap="pool",
        token="0,1",
        tokens=16,
        method="pca-hdbscan",
        split="test",
        seed=0,
        dimensions=2,
        labels=list("0123456789"),
        **vars(scores(xy, labels.numpy(), found)),
        cloud=points,
        plane=found,
    )
    return projection_page(Projections(runs=[run]))


def test_names_are_no_markup() -> None:
    text = page()
    assert "<made up>" not in text
    assert "&lt;made up&gt;" in text


def test_pointing_and_arrow_keys_show_a_digit(tab: Tab, tmp_path: Path) -> None:
    tab.show(page(), tmp_path)
    assert tab.ask(PROBE) == [
        "test:2, patch 1,1: digit 7, no cluster",
        "0px -112px",
        "false",
        "test:1: digit 7, cluster A (1 of its 2 are 3)",
        "true",
    ]
    assert tab.complaints == []
