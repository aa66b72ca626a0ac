import pytest

from attnlab.errors import LabError
from attnlab.notation import Head, parse_head


def test_head_name_round_trip() -> None:
    head = parse_head("decoder.10.cross.2")
    assert head == Head("decoder", 10, "cross", 2)
    assert str(head) == "decoder.10.cross.2"
    assert head.attention == "decoder.10.cross"


def test_heads_sort_by_number_not_by_text() -> None:
    names = ["encoder.10.self.0", "encoder.2.self.11", "encoder.2.self.3", "decoder.0.self.0"]
    in_order = [str(head) for head in sorted(map(parse_head, names))]
    assert in_order == ["decoder.0.self.0", "encoder.2.self.3", "encoder.2.self.11", "encoder.10.self.0"]


@pytest.mark.parametrize(
    "name", ["", "encoder.1.self", "encoder.1.self.3.z", "head.1.self.3", "encoder.-1.self.0"]
)
def test_no_head_name(name: str) -> None:
    with pytest.raises(LabError, match=r"is not the name of a head; the form is stack\.layer\.kind\.index"):
        parse_head(name)
