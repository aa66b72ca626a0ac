"""What ``import attnlab`` offers: few names, each with an example that holds."""

import doctest
from pathlib import Path

import pytest

import attnlab
from attnlab import registry

MOST = 20


def examples_of(name: str) -> doctest.DocTest:
    """The examples in the docstring of a public name, which know all public names."""
    known = {each: getattr(attnlab, each) for each in attnlab.__all__}
    text = known[name].__doc__ or ""
    return doctest.DocTestParser().get_doctest(text, known, name, None, None)


def test_there_are_few_names_and_all_are_there() -> None:
    assert len(attnlab.__all__) == len(set(attnlab.__all__)) <= MOST
    assert sorted(attnlab.__all__) == attnlab.__all__
    for name in attnlab.__all__:
        assert getattr(attnlab, name).__module__.startswith("attnlab.")


SLOW = ("study", "sweep")  # they start processes


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] if each in SLOW else []) for each in attnlab.__all__],
)
def test_the_example_of_each_name_holds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_tasks", {**registry._tasks})  # some examples define a task
    test = examples_of(name)
    assert test.examples, f"{name} has no example"
    found: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=found.append, clear_globs=False)
    assert runner.failures == 0, "".join(found)


def test_a_planted_wrong_example_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attnlab.spec, "__doc__", '>>> spec("addition").seed\n1\n')
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(examples_of("spec"), out=lambda _: None).failed == 1
