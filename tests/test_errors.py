import pytest

from attnlab.errors import InputError, LabError, RunError, SpecError, StorageError, nearest


def test_nearest_names_the_nearest() -> None:
    assert nearest("wdith", ["width", "heads"]) == "; did you mean 'width'?"


def test_nearest_lists_all_when_none_is_near() -> None:
    assert nearest("zzz", ["width", "heads"]) == "; known: heads, width"


def test_nearest_is_short_where_much_is_known() -> None:
    """What comes first, then what is most like the word; never more than a sentence holds."""
    known = ["read", *(f"encoder.{layer}.norm" for layer in range(60)), "source_embed", "target_embed"]
    assert nearest("embed", known, first=["read"], command="attnlab list") == (
        "; known: read, source_embed, target_embed, encoder.0.norm, encoder.1.norm, encoder.2.norm, "
        "encoder.3.norm, encoder.4.norm, and 55 more, all in 'attnlab list'"
    )
    assert nearest("zzz", "abcdefghi") == "; known: a, b, c, d, e, f, g, h, and 1 more"
    assert nearest("zzz", "abcdefgh") == "; known: a, b, c, d, e, f, g, h"


def test_nearest_of_nothing() -> None:
    assert nearest("x", []) == "; known: none"


@pytest.mark.parametrize("kind", [SpecError, InputError, RunError, StorageError])
def test_every_error_is_a_lab_error(kind: type[Exception]) -> None:
    assert issubclass(kind, LabError)
