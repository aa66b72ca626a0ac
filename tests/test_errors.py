import pytest

from attnlab.errors import InputError, LabError, RunError, SpecError, StorageError, nearest


def test_nearest_names_the_nearest() -> None:
    assert nearest("wdith", ["width", "heads"]) == "; did you mean 'width'?"


def test_nearest_lists_all_when_none_is_near() -> None:
    assert nearest("zzz", ["width", "heads"]) == "; known: heads, width"


def test_nearest_of_nothing() -> None:
    assert nearest("x", []) == "; known: none"


@pytest.mark.parametrize("kind", [SpecError, InputError, RunError, StorageError])
def test_every_error_is_a_lab_error(kind: type[Exception]) -> None:
    assert issubclass(kind, LabError)
