"""Time-lapse: a planted moment is found and none is made up; frames are what the model was; every task."""

import html
import json
import math
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.analysis.heads import describe_heads, run_sets
from attnlab.analysis.positions import movements, run_places
from attnlab.analysis.subjects import load_subject
from attnlab.analysis.timelapse.moments import Moment, find_moment, frames_around
from attnlab.analysis.timelapse.runs import (
    HeadLine,
    Plane,
    Timelapse,
    changed_most,
    one_plane,
    timelapse_run,
)
from attnlab.cli.drawing import write_out
from attnlab.errors import InputError, LabError
from attnlab.figures.timelapse import chosen_frames, draw_timelapse, look, timelapse_data
from attnlab.problems.grids import Grids
from attnlab.problems.sorting import Sorting
from attnlab.report.common import training_section
from attnlab.report.live import reach, timelapse_page
from attnlab.report.run_report import write_report
from attnlab.runs import RunFolder, create_run, load_model, open_run, snapshot_steps
from attnlab.specs import Learned, PatchSeq2SeqModel, Spec, TokensModel, VitModel
from attnlab.tables.timelapse import frame_rows
from attnlab.training import train_run
from commands import attnlab, complaint
from tiny import tiny
from tiny_digits import squares_spec, write_squares

DOUBLINGS = [2**power - 1 for power in range(11)]  # log2(1 + step) is 0, 1, .., 10
VIT = VitModel(width=12, heads=3, layers=1, hidden=5, patch=14, pooling="cls", positions=Learned(length=5))
GRID = PatchSeq2SeqModel(width=12, heads=2, hidden=5, patch=14, rows=1, columns=2, encoder_layers=1)
LISTS = Sorting(low=3, high=5, train=23, valid=31, test=5)


def test_a_planted_jump_is_found() -> None:
    found = find_moment(DOUBLINGS, [0.1] * 8 + [0.9] * 3)
    assert (found.sudden, found.start, found.end) == (True, 127, 255)
    assert found.middle == round(2**7.5 - 1)
    assert (found.before, found.after) == (0.1, 0.9)
    assert found.share == pytest.approx(1.0)
    assert found.whole == pytest.approx(0.8)
    assert found.sentence == (
        "sudden learning between steps 127 and 255: the best accuracy on validation examples rose "
        "from 10.00% to 90.00%, 100% of the whole rise within one doubling"
    )


@given(st.integers(1, 10), st.floats(0, 0.3), st.floats(0.5, 1), st.floats(0, 0.02))
def test_wherever_it_is_planted(place: int, low: float, high: float, wave: float) -> None:
    """Also under a wave that is small beside the jump."""
    curve = [(low if knot < place else high) + wave * (-1) ** knot for knot in range(11)]
    found = find_moment(DOUBLINGS, curve)
    assert found.sudden
    assert (found.start, found.end) == (DOUBLINGS[place - 1], DOUBLINGS[place])


STEPS = list(range(0, 1001, 10))


@pytest.mark.parametrize(
    ("curve", "share"),
    [
        ([step / 1000 for step in STEPS], 0.5),
        ([math.log2(1 + step) / math.log2(1001) for step in STEPS], 1 / math.log2(1001)),
        ([1 - math.exp(-step / 100) for step in STEPS], 0.25),
    ],
    ids=["straight over steps", "straight over log steps", "exponential"],
)
def test_slow_curves_have_no_sudden_moment(curve: list[float], share: float) -> None:
    found = find_moment(STEPS, curve)
    assert not found.sudden
    assert found.share == pytest.approx(share, abs=0.02)
    assert found.sentence.startswith("no sudden moment: the most that the best accuracy")
    assert "60% would be sudden" in found.sentence


def test_noise_between_late_epochs_is_no_moment() -> None:
    """Late epochs are close in log steps, so that a slope between two of them would be noise."""
    noisy = [step / 1000 + 0.03 * (-1) ** place for place, step in enumerate(STEPS)]
    assert not find_moment(STEPS, noisy).sudden


def test_what_was_not_measured_is_not_sudden() -> None:
    assert not find_moment([0, 1023], [0.0, 1.0]).sudden
    assert find_moment([0, 1023], [0.0, 1.0]).share == pytest.approx(0.1)


def test_too_little_and_too_short() -> None:
    assert "rose by 5.0 points in all" in find_moment(DOUBLINGS, [0.1] * 8 + [0.15] * 3).sentence
    falling = find_moment(DOUBLINGS, [0.9] * 5 + [0.1] * 6)
    assert (falling.sudden, falling.whole) == (False, 0.0)
    short = find_moment([100, 200, 400], [0.0, 1.0, 1.0])
    assert (short.sudden, short.start) == (False, None)
    assert short.sentence == (
        "no sudden moment can be found: measurements from step 100 to 400 span "
        "less than 4 doublings of steps"
    )


def test_a_dip_before_the_jump_adds_nothing_to_it() -> None:
    """The whole rise is from the best before, 52%, and the jump is all of it: never 111%."""
    found = find_moment(DOUBLINGS, [0.52] + [0.45] * 7 + [0.95] * 3)
    assert (found.sudden, found.start, found.end) == (True, 127, 255)
    assert (found.before, found.after) == (0.52, 0.95)
    assert found.whole == pytest.approx(0.43)
    assert found.share == pytest.approx(1.0)
    assert "rose from 52.00% to 95.00%, 100% of the whole rise" in found.sentence


def test_coming_back_is_no_learning() -> None:
    slow = [0.1, 0.2, 0.4, 0.5, 0.7, 0.8, 0.9]
    found = find_moment(DOUBLINGS, [*slow, 0.1, 0.95, 0.95, 0.95])
    assert not found.sudden
    assert found.whole == pytest.approx(0.85)
    assert (found.start, found.end) == (1, 3)  # 20% to 40%, as much as 50% to 70% later
    assert found.share == pytest.approx(0.2 / 0.85)
    assert (
        "rose by 5.0 points in all" in find_moment(DOUBLINGS, [0.9] * 5 + [0.1] * 3 + [0.95] * 3).sentence
    )


@given(st.lists(st.floats(0, 1), min_size=11, max_size=11))
def test_no_doubling_has_more_than_the_whole_rise(curve: list[float]) -> None:
    found = find_moment(DOUBLINGS, curve)
    assert found.whole == max(curve) - curve[0]
    assert found.share is None or 0 < found.share <= 1 + 1e-9


def test_snapshots_around_a_moment() -> None:
    assert frames_around([0, 3, 8, 90], 3, 7) == (1, 2)
    assert frames_around([0, 3, 8, 90], 7, 8) == (1, 2)
    assert frames_around([10, 20], 5, 30) == (0, 1)


def test_one_plane_for_all_steps() -> None:
    """Points that only grow keep their directions; what the plane leaves out is told."""
    labels = torch.arange(12) % 2
    flat = torch.zeros(12, 5)
    flat[:, 3] = labels * 2.0 - 1
    flat[:, 1] = torch.linspace(-0.1, 0.1, 12)
    clouds = [scale * flat + 7 for scale in (1.0, 4.0)]
    found = one_plane(clouds, labels, tap="pool", labels=["no", "yes"])
    assert found.x[0] == pytest.approx((2.0 * labels - 1).tolist(), abs=0.02)
    assert found.x[1] == pytest.approx([4 * x for x in found.x[0]], abs=1e-3)
    assert found.variance == pytest.approx([1, 1])
    assert (found.silhouette[0] or 0) > 0.9
    assert (found.points, found.dimensions) == (12, 5)
    still = one_plane([torch.ones(12, 1)], labels, tap="pool", labels=[])
    assert (still.x, still.variance) == ([[0.0] * 12], [0.0])
    with pytest.raises(LabError, match="not all finite"):
        one_plane([flat / 0], labels, tap="pool", labels=[])


def projection(found: Timelapse) -> Plane:
    assert found.projection is not None
    return found.projection


def specs(folder: Path) -> dict[str, Spec]:
    """A tiny training of every kind, each with its snapshots."""
    squares = squares_spec(write_squares(folder), snapshots=(4,), epochs=2)
    grids = Grids(rows=1, columns=2, train=30, valid=11, test=5, directory=str(folder))
    return {
        "patches": replace(squares, engine="explicit"),
        "vit": replace(squares, model=VIT),
        "grids": replace(squares, task=grids, model=GRID),
        "sorting": replace(squares, task=LISTS, model=TokensModel(width=12, heads=3, layers=1, hidden=5)),
        "addition": tiny(threads=1, snapshots=(0, 5, 10)),
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    home = tmp_path_factory.mktemp("timelapse")
    found = {name: create_run(home / name, spec) for name, spec in specs(home / "squares").items()}
    for run in found.values():
        train_run(run)
    return found


@pytest.fixture(scope="module")
def found(runs: dict[str, RunFolder]) -> dict[str, Timelapse]:
    return {name: timelapse_run(run, examples=7, samples=20) for name, run in runs.items()}


@pytest.mark.parametrize("name", ["patches", "vit", "grids", "sorting", "addition"])
def test_frames_are_what_training_saw(
    name: str, runs: dict[str, RunFolder], found: dict[str, Timelapse]
) -> None:
    run, told = runs[name], found[name]
    assert told.steps == snapshot_steps(run)
    epochs = {line.step: line for line in run.metrics().epochs}
    both = [place for place, step in enumerate(told.steps) if step in epochs]
    assert both
    for place in both:
        line = epochs[told.steps[place]]
        assert told.accuracy[place] == pytest.approx(line.valid_exact_match)
        assert told.loss[place] == pytest.approx(line.valid_loss, rel=1e-4)
    assert told.curve.step == sorted({*told.steps, *epochs})
    kept = run.analysis("timelapse")
    assert kept is not None
    assert kept["steps"] == told.steps


@pytest.mark.parametrize("name", ["grids", "sorting", "addition"])
def test_heads_are_as_heads_measures_them(
    name: str, runs: dict[str, RunFolder], found: dict[str, Timelapse]
) -> None:
    subject = replace(load_subject(runs[name], count=7), model=load_model(runs[name], "last"))
    wanted = describe_heads(subject, run_sets(runs[name], subject)).heads
    for head, want in zip(found[name].heads, wanted, strict=True):
        assert head.head == want.head
        assert head.metrics.keys() == want.metrics.keys() - {"entropy_nats"}
        for metric, values in head.metrics.items():
            assert values[-1] == pytest.approx(want.metrics[metric].value)
            assert head.uniform[metric] == pytest.approx(want.metrics[metric].uniform)


def test_positions_start_where_they_are_and_move(
    runs: dict[str, RunFolder], found: dict[str, Timelapse]
) -> None:
    (table,) = found["vit"].positions
    assert table.mean[0] == 0.0
    assert table.mean[-1] > 0.0
    (stack,) = run_places(runs["vit"], load_model(runs["vit"], "last"))
    (moved,) = movements(stack)
    assert table.distance[-1] == pytest.approx(moved.distance)
    assert table.rows == [0, 1, 2, 3, 4]
    assert found["addition"].positions == []  # sinusoidal ones do not learn


def test_points_have_the_label_of_their_answer(
    runs: dict[str, RunFolder], found: dict[str, Timelapse]
) -> None:
    sums = load_subject(runs["addition"], count=10).examples.targets
    labels = projection(found["addition"]).label
    assert labels == sums[:, :2].flatten().tolist()[: len(labels)]  # digits, not the end behind them
    assert len(labels) == 14  # there are no more than seven sums
    lists = load_subject(runs["sorting"], count=20).examples.targets.tolist()
    assert projection(found["sorting"]).label == lists
    assert projection(found["sorting"]).labels == ["unsorted", "sorted"]
    assert projection(found["grids"]).points == 20
    for name, tap in (("addition", "encoder_norm"), ("sorting", "encoder.0.feed_residual.out")):
        with pytest.raises(InputError, match=f"tap is '{tap}', whose tokens are no answers"):
            timelapse_run(runs[name], tap=tap)


def test_what_changed_most_in_the_moment() -> None:
    heads = [
        HeadLine(head="encoder.0.self.0", metrics={"entropy": [0.9, 0.8, 0.3, 0.3]}, uniform={}),
        HeadLine(head="encoder.0.self.1", metrics={"entropy": [0.9, 0.9, 1.0, 0.1]}, uniform={}),
    ]
    moment = Moment(True, "", 1.0, start=3, middle=4, end=7)
    rows = changed_most([0, 3, 8, 90], heads, moment)
    assert [(row.head, row.before, row.after) for row in rows] == [
        ("encoder.0.self.0", 0.8, 0.3),
        ("encoder.0.self.1", 0.9, 1.0),
    ]
    assert (rows[0].from_step, rows[0].to_step) == (3, 8)
    assert changed_most([0, 3, 8, 90], heads, replace(moment, sudden=False)) == []


def test_frames_that_are_drawn() -> None:
    calm = Moment(False, "", 0.0)
    assert chosen_frames([0, 9, 99], [0.0, 0.5, 1.0], calm) == [0, 1, 2]
    evenly = chosen_frames(DOUBLINGS, [0.0] * 11, calm)
    assert len(evenly) == 6
    assert {0, 5, 10} <= set(evenly)
    rising = [0.0] * 7 + [0.2, 0.4, 0.8, 1.0]
    assert {0, 7, 8, 9, 10} <= set(chosen_frames(DOUBLINGS, rising, calm))
    sudden = Moment(True, "", 1.0, start=433, end=861)
    around = chosen_frames(list(range(0, 1000, 10)), [0.0] * 100, sudden)
    assert {0, 43, 87, 99} <= set(around)
    assert len(around) == 6


@pytest.mark.parametrize("name", ["patches", "grids", "addition"])
def test_every_task_has_its_panels(name: str, found: dict[str, Timelapse]) -> None:
    data = timelapse_data(found[name])
    assert data.clouds is not None
    shown = [axes for axes in draw_timelapse(data).axes if axes.axison]
    assert len(shown) == 2 + bool(data.positions) + len(data.panels) + len(data.clouds.frames)


def test_figure_data(found: dict[str, Timelapse]) -> None:
    told = found["sorting"]
    data = timelapse_data(told)
    entropy, *others = data.panels
    assert entropy.metric == "entropy"
    assert entropy.uniform == {"encoder.0.self": pytest.approx(1.0)}
    assert {"next", "wrong_side"} <= {panel.metric for panel in others}
    lines = {line.head: line.values for line in entropy.lines}
    assert lines == {head.head: head.metrics["entropy"] for head in told.heads}
    assert entropy.highest == max(lines, key=lambda head: lines[head][-1])
    assert data.clouds is not None
    assert [frame.step for frame in data.clouds.frames] == told.steps
    assert Timelapse.from_json(json.loads(json.dumps(told.to_json()))) == told
    assert len({look(place) for place in range(18)}) == 18
    titles = [axes.get_title(loc="left") for axes in draw_timelapse(data).axes]
    assert f"highest at the end: {entropy.highest}" in titles[2]


def test_page_tells_every_snapshot(found: dict[str, Timelapse]) -> None:
    told = replace(found["vit"], run="<made up>")
    page = timelapse_page(told)
    assert "<made up>" not in page
    assert page.count("<tr><td>") == len(told.steps)
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    first = frame_rows(told)[0]
    assert first["moved"] == "0.000"
    assert first["step"] == 0
    assert reach(projection(told)) == max(
        abs(value) for axis in (projection(told).x, projection(told).y) for frame in axis for value in frame
    )


def test_the_page_of_a_run_shows_its_time_lapse(
    runs: dict[str, RunFolder], found: dict[str, Timelapse], tmp_path: Path
) -> None:
    run, offer = runs["sorting"], "'attnlab timelapse"
    page = html.unescape(write_report(run, tmp_path / "a.html", sections=["trained"]).read_text())
    assert 'data-name="timelapse"' in page
    assert found["sorting"].moment.sentence in page
    assert offer not in page
    kept = run.file("analysis/timelapse.json").rename(tmp_path / "kept.json")
    waiting = training_section(run)
    kept.rename(run.file("analysis/timelapse.json"))
    assert [each.name for each in waiting.figures] == ["curves"]
    (words,) = waiting.words
    assert words.startswith(f"It kept {len(snapshot_steps(run))} snapshots on the way; {offer} {run.path}'")
    without = training_section(open_run("zoo:adder"))
    assert ([each.name for each in without.figures], without.words) == (["curves"], [])


def test_command(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    path = runs["sorting"].path
    done = attnlab("timelapse", path, "--samples", "0", "--examples", "5", "--out", "all", cwd=tmp_path)
    assert "mean entropy" in done.stdout
    assert "silhouette" not in done.stdout
    assert "no sudden moment" in done.stdout
    assert {file.name for file in (tmp_path / "all").iterdir()} == {
        f"timelapse-no-points.{ending}" for ending in ("svg", "png", "json", "html")
    }
    words = ("--samples=20", "--examples=5", "--tap=pool", "--json")
    told = json.loads(attnlab("timelapse", path, *words, "--out", "all", cwd=tmp_path).stdout)
    assert {Path(file).stem for file in told["files"]} == {"timelapse-pool"}
    done = attnlab("timelapse", path, "--json", "--samples=0", "--out", "one/page.html", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert told["files"] == ["one/page.html", "one/page.json"]
    assert told["projection"] is None
    assert told["moment"]["sudden"] is False


def test_a_poorer_time_lapse_does_not_take_the_place_of_a_fuller_one(
    runs: dict[str, RunFolder], found: dict[str, Timelapse], tmp_path: Path
) -> None:
    run = RunFolder(copytree(runs["sorting"].path, tmp_path / "run"))
    kept = run.analysis("timelapse")
    assert kept is not None
    assert (kept["examples"], kept["points"]) == (7, 20)
    timelapse_run(run, examples=7, samples=20, tap="pool")
    timelapse_run(run, examples=7, samples=0)
    done = attnlab("timelapse", "run", "--examples", "5", "--samples", "20", cwd=tmp_path)
    assert "run/analysis/timelapse.json stays as it is: it is of 7 examples, this is of 5\n" in done.stderr
    assert (run.file("figures") / "timelapse-5-examples-20-points.svg").exists()
    assert run.analysis("timelapse") == kept
    other, bare = run.analysis("timelapse-pool"), run.analysis("timelapse-no-points")
    assert other is not None
    assert bare is not None
    assert (other["projection"]["tap"], bare["projection"]) == ("pool", None)
    run.file("analysis/timelapse.json").unlink()
    assert [each.name for each in training_section(run).figures] == ["curves", "timelapse"]


def test_figures_of_a_shipped_run_stay_out_of_the_package(
    found: dict[str, Timelapse], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is drawn here; what counts is the folder."""
    told = found["sorting"]

    def write(folder: Path, name: str, data: object, drawn: object) -> list[Path]:
        folder.mkdir(parents=True)
        return [folder / f"{name}.svg"]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("attnlab.figures.style.write_figure", write)
    words = ("", "timelapse", told, lambda data: None, lambda: "page")
    files = write_out(RunFolder(tmp_path / "package", shipped=True), *words)  # type: ignore[arg-type]
    assert files == [Path("figures/timelapse.svg"), Path("figures/timelapse.html")]
    assert (tmp_path / "figures/timelapse.html").read_text() == "page"
    own = write_out(RunFolder(tmp_path / "own"), *words)  # type: ignore[arg-type]
    assert own[1] == tmp_path / "own/figures/timelapse.html"


def test_what_is_projected_needs_points(tmp_path: Path) -> None:
    for words in ({"tap": "pool"}, {"token": "all"}):
        with pytest.raises(
            InputError, match="samples is 0, so nothing is projected; leave out tap and token"
        ):
            timelapse_run(RunFolder(tmp_path), samples=0, **words)  # type: ignore[arg-type]


def test_a_run_without_snapshots_shows_its_first_and_its_best_weights() -> None:
    """The first are those that the seed gives, so they guess; the best are the shipped ones."""
    found = timelapse_run(open_run("zoo:adder"), examples=100, samples=0)
    assert found.steps == [0, 471]
    assert found.accuracy[0] < 0.05
    assert found.accuracy[1] == 1.0
    assert found.heads[0].metrics["entropy"][0] > found.heads[0].metrics["entropy"][1]


def test_refusals(runs: dict[str, RunFolder], tmp_path: Path) -> None:
    path = runs["sorting"].path
    begun = create_run(tmp_path / "begun", runs["sorting"].spec())
    begun.write({"metrics.jsonl": b""})
    assert "run begun has not finished an epoch yet" in complaint("timelapse", begun.path, cwd=tmp_path)
    assert "out is 'x.gif'; give a file" in complaint("timelapse", path, "--out", "x.gif", cwd=tmp_path)
    assert "samples is 3; it must be 0" in complaint("timelapse", path, "--samples", "3", cwd=tmp_path)
    assert "examples is 0; it must" in complaint("timelapse", path, "--examples", "0", cwd=tmp_path)
