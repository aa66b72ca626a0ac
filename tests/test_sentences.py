"""Every sentence a user can meet is plain technical English, as far as a list of idioms can tell."""

import pytest
from sentences import IDIOMS, Sentence, idioms_of, of_python, of_script, sentences

KINDS = ("error", "warning", "help", "text", "page")
"""What a program says. Of docstrings those of public names count, which the site shows."""
PUBLIC = (
    "cli/",
    "front/",
    "specs/",
    "errors",
    "registry",
    "results",
    "sets",
    "drawn",
    "model.py",
    "foreign/wrap",
)


@pytest.fixture(scope="module")
def every() -> list[Sentence]:
    return sentences()


def _shown(each: Sentence) -> bool:
    public = each.file.removeprefix("src/attnlab/").startswith(PUBLIC)
    return each.kind in KINDS or (each.kind == "docstring" and public)


def test_no_sentence_has_an_idiom(every: list[Sentence]) -> None:
    odd = [
        (f"{each.file}:{each.line}", each.text[:200], found)
        for each in every
        if _shown(each) and (found := idioms_of(each.text))
    ]
    assert odd == []


def test_the_list_has_all_kinds(every: list[Sentence]) -> None:
    found = {kind: {each.text for each in every if each.kind == kind} for kind in (*KINDS, "docstring")}
    assert "a head {brief(name)}" not in found["error"]
    assert any(text.startswith("unknown command {brief(name)}") for text in found["error"])
    assert any("Print JSON instead of tables." in text for text in found["help"])
    assert any("Train a model and keep everything" in text for text in found["docstring"])
    assert "Full size" in found["page"]
    assert {kind for kind, texts in found.items() if not texts} == set()


def test_what_is_collected_of_a_module() -> None:
    source = '''"""What it is."""

class Thing:
    """A thing."""

    size: int = 3
    """How large."""

    def _hidden(self):
        """Not shown."""
        raise LabError(f"size is {self.size:,}; it must be 4")

def warned():
    say("no such", "place here")
    arg(help="A run folder.")
'''
    found = [(each.kind, each.text) for each in of_python(source, "x.py")]
    assert found == [
        ("docstring", "What it is."),
        ("docstring", "A thing."),
        ("docstring", "How large."),
        ("inside", "Not shown."),
        ("error", "size is {self.size}; it must be 4"),
        ("text", "no such"),
        ("text", "place here"),
        ("help", "A run folder."),
    ]
    page = "<p>Good to know</p>\n<!-- not this -->\n<script>say(`no run ${name}`); // nor this\n</script>"
    assert [each.text for each in of_script(page, "x.html")] == ["Good to know", "no run ${name}"]


@pytest.mark.parametrize(
    "text",
    [
        "run 'x' is no folder", "it tells sorted lists", "what a user can mend", "points of percent",
        "it reads digits rightly", "known: there are none", "to choose by",
    ],
)  # fmt: skip
def test_idioms_are_found(text: str) -> None:
    assert idioms_of(text)


@pytest.mark.parametrize("text", ["there is no run at 'x'", "is no longer there", "unknown command 'tran'"])
def test_plain_sentences_are_left_alone(text: str) -> None:
    assert idioms_of(text) == {}
    assert set(IDIOMS.values())
