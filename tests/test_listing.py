"""What the front door promises, as one script from its first line to its last."""

import json
import shutil
import sys
from pathlib import Path

import pytest

import attnlab as al
from attnlab.runs import save_weights
from commands import run
from planted import SPEC, planted

LISTING = """
import attnlab as al

run = al.train("addition", digits=2, width=32, epochs=4, seed=0)
run = al.load("zoo:adder")
run.predict("374+814")
run.evaluate()
seen = run.record("374+814")
seen["decoder.1.cross.pattern"]
seen.plot("decoder.*.cross")
with run.without("encoder.0.self.0", to="mean"):
    run.predict("374+814")
run.ablate(); run.heads(); run.explain("374+814"); run.prune(keep=5); run.patch(column=1)
run.project(); run.timelapse(); run.report("adder.html"); run.export("adder.onnx"); run.resume()
variants = {"1 head": al.spec("addition", heads=1), "4 heads": al.spec("addition", heads=4)}
al.study(variants, seeds=3).run().frame()
al.compare(run, "runs/other")
"""
SMALLER = {
    "epochs=4": "epochs=1, train=200",
    '"zoo:adder"': '"runs/adder"',
    "374+814": "37+81",
    "heads=1)": "heads=1, digits=1, width=16, epochs=2)",
    "heads=4)": "heads=4, digits=1, width=16, epochs=2)",
}
"""As they stand, the trainings would take half an hour and pruning minutes."""


@pytest.mark.slow
def test_every_line_works(tmp_path: Path) -> None:
    """A small adder with weights written by hand, which is always right, stands for the shipped one."""
    made = al.train(SPEC, epochs=1, train=97, valid=31, test=37, threads=1, out=tmp_path / "runs/adder")
    save_weights(made, "best", planted(carries=True)[1].state_dict())
    shutil.copytree(made.path, tmp_path / "runs/other")
    text = LISTING
    for own, small in SMALLER.items():
        assert own in text
        text = text.replace(own, small)
    (tmp_path / "listing.py").write_text(text)
    done = run([sys.executable, "listing.py"], cwd=tmp_path)
    assert done.stdout == ""
    runs = {each.name for each in (tmp_path / "runs").iterdir()}
    assert runs == {"adder", "other", "addition-default-s0", "adder-pruned-5", "pool"}
    assert len(list((tmp_path / "runs/pool").glob("*/summary.json"))) == 6
    kept = {path.stem for path in (tmp_path / "runs/adder/analysis").iterdir()}
    assert kept >= {"ablate-valid", "evaluate-test", "heads-valid", "timelapse"}
    pruned = json.loads((tmp_path / "runs/adder-pruned-5/analysis/prune.json").read_text())
    assert (len(pruned["kept"]), pruned["heads"]) == (5, 18)
    assert pruned["test"]["before"]["exact_match"] == 1
    for name in ("adder.html", "adder.onnx"):
        assert (tmp_path / name).stat().st_size > 10_000
