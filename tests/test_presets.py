import pytest

from attnlab.errors import SpecError
from attnlab.presets import preset
from attnlab.specs import spec_hash
from specs import PRESETS


def test_every_task_has_a_default() -> None:
    assert all("default" in named for named in PRESETS.values())
    assert preset("addition", "default") is PRESETS["addition"]["default"]


def test_presets_are_different_experiments_of_their_task() -> None:
    for task, named in PRESETS.items():
        assert {spec.task.kind for spec in named.values()} == {task}
        assert len({spec_hash(spec) for spec in named.values()}) == len(named)


def test_unknown_task() -> None:
    with pytest.raises(SpecError, match=r"^unknown task 'additoin'; did you mean 'addition'\?$"):
        preset("additoin", "default")


def test_unknown_preset() -> None:
    with pytest.raises(
        SpecError, match=r"^unknown preset 'refrence' of addition; did you mean 'reference'\?$"
    ):
        preset("addition", "refrence")
