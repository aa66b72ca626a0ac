"""The page of a time-lapse in a real browser: slider, buttons, keys and play, without a complaint."""

from pathlib import Path

import pytest

from attnlab.analysis.timelapse.moments import find_moment
from attnlab.analysis.timelapse.runs import Curve, HeadLine, Plane, TableLine, Timelapse
from attnlab.report.live import timelapse_page
from browser import Tab

pytestmark = pytest.mark.slow

PROBE = """(() => {
const said = [], key = (target, key) =>
  target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
said.push(now.textContent);
slider.value = 0;
slider.dispatchEvent(new Event("input"));
said.push(told.textContent, find("heads").getAttribute("aria-label"));
key(document.body, "ArrowRight");
said.push(slider.value);
choices.children[1].click();
said.push(find("heads").getAttribute("aria-label"), choices.children[1].getAttribute("aria-pressed"));
find("on").click();
said.push(slider.value, find("cloudwords").textContent, find("places").getAttribute("aria-label"));
key(document.body, " ");
said.push(play.textContent, slider.value);
key(document.body, " ");
said.push(play.textContent, String(document.documentElement.scrollWidth <= innerWidth));
return said;
})()"""


def told() -> Timelapse:
    """Three snapshots of two heads."""
    steps, accuracy = [0, 15, 31], [0.0, 0.0, 1.0]
    heads = [
        HeadLine(
            head=f"encoder.0.self.{index}",
            metrics={"entropy": [1.0, 0.5, 0.25], "next": [0.1, 0.2, 0.3 + index / 2]},
            uniform={"entropy": 1.0, "next": 0.1},
        )
        for index in range(2)
    ]
    moved = [[0.0, 0.0], [0.1, 0.3], [0.2, 0.6]]
    return Timelapse(
        run="made up",
        task="sorting",
        steps=steps,
        accuracy=accuracy,
        token_accuracy=accuracy,
        loss=[2.0, 1.0, 0.5],
        curve=Curve(step=steps, accuracy=accuracy, loss=[2.0, 1.0, 0.5]),
        moment=find_moment(steps, accuracy),
        metrics={"entropy": "entropy of a row", "next": "weight on the token after"},
        heads=heads,
        changed=[],
        positions=[
            TableLine(
                stack="tokens",
                table="add.table",
                rows=[0, 1],
                distance=moved,
                mean=[0.0, 0.2, 0.4],
                sideways=[0.0, 0.1, 0.2],
                start_norm=1.0,
            )
        ],
        examples=5,
        valid=1234,
        points=2,
        projection=Plane(
            tap="pool",
            labels=["unsorted", "sorted"],
            points=2,
            dimensions=3,
            label=[0, 1],
            x=[[0.0, 0.0], [-1.0, 1.0], [-2.0, 2.0]],
            y=[[0.0, 0.0]] * 3,
            variance=[0.0, 0.5, 0.75],
            silhouette=[None, 0.1, 0.9],
        ),
    )


def test_the_moment_is_told() -> None:
    page = timelapse_page(told())
    assert "Sudden learning between steps 15 and 31: the best accuracy" in page
    assert "The band is the moment of sudden learning" in page
    assert "1,234 validation examples" in page


def test_slider_keys_and_play(tab: Tab, tmp_path: Path) -> None:
    tab.show(timelapse_page(told()), tmp_path, width=500)
    assert tab.ask(PROBE) == [
        "step 31 (snapshot 3 of 3): 100.0% right, loss 0.5000",
        "step 0 (snapshot 1 of 3): 0.0% right, loss 2.0000",
        "entropy of a row, at step 0: encoder.0.self.0 1.00, encoder.0.self.1 1.00",
        "1",
        "weight on the token after, at step 15: encoder.0.self.0 0.20, encoder.0.self.1 0.20",
        "true",
        "2",
        "The plane holds 75% of the variance at this snapshot; silhouette of the labels in all dimensions "
        "0.90 (1: apart, 0: mixed).",
        "Mean distance of position vectors from their start at step 31: tokens 0.400",
        "Pause",
        "0",
        "Play",
        "true",
    ]
    assert tab.complaints == []
