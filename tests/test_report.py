import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attnlab.errors import StorageError
from attnlab.report.run_report import write_report
from attnlab.runs import Run, create_run
from attnlab.spec import AdditionTask, Seq2SeqModel, Spec, Training
from attnlab.training import train_run

SPEC = Spec(
    task=AdditionTask(digits=1, train=30, valid=5, test=7),
    model=Seq2SeqModel(width=8, heads=2, hidden=11),
    training=Training(epochs=2, batch=7, threads=1),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = create_run(tmp_path_factory.mktemp("runs") / "<i>run", SPEC)
    train_run(run)
    return run


@pytest.fixture(scope="module")
def page(run: Run) -> str:
    return write_report(run, run.path / "page.html").read_text()


class Reader(HTMLParser):
    """Collects what a page would fetch, its figures' descriptions, and whether tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.described = 0
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        for name in ("src", "href", "xlink:href"):
            address = found.get(name)
            if address and not address.startswith(("#", "data:")):
                self.fetched.append(address)
        self.described += tag == "figure" and bool(found.get("aria-label"))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("meta", "link", "br"):
            return
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_describes_every_figure(page: str) -> None:
    reader = Reader()
    reader.feed(page)
    assert reader.fetched == []
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)
    assert "@import" not in page
    assert reader.open == []
    assert reader.described == page.count("<figure") == 5
    assert len(page.encode()) < 4_000_000


def test_every_head_of_every_kind_is_shown(page: str) -> None:
    for stack, kind in (("encoder", "self"), ("decoder", "self"), ("decoder", "cross")):
        for layer in range(2):
            for index in range(2):
                assert f">{stack}.{layer}.{kind}.{index}</text>" in page


def test_names_are_escaped(page: str) -> None:
    assert "<i>run" not in page
    assert "&lt;i&gt;run" in page


def test_it_says_whether_the_run_was_verified(run: Run, page: str, tmp_path: Path) -> None:
    assert "Not verified yet" in page
    rows = [{"chain": 0, "examples": 100, "exact_match": 0.99, "exact_match_interval": [0.9, 1.0]}]
    found = {
        "correct": 99, "total": 100, "seen": {"correct": 50, "total": 50},
        "unseen": {"correct": 49, "total": 50}, "by_chain": rows,
        "wrong": [{"a": 3, "b": 4, "answer": "8"}],
    }  # fmt: skip
    run.keep_analysis("verify", found)
    page = write_report(run, tmp_path / "page.html").read_text()
    assert "99 of 100 sums correct." in page
    assert "Of all 100 sums" in page
    assert "<tr><td>3+4</td><td>7</td><td>8</td></tr>" in page
    assert "3+4: the answer looks at the operands" in page
    (run.path / "analysis/verify.json").unlink()


def test_numbers_stand_beside_each_figure(run: Run, page: str) -> None:
    numbers = [
        json.loads(text.replace("&#34;", '"'))
        for text in re.findall(r"<summary>The numbers</summary><pre>(.*?)</pre>", page)
    ]
    assert len(numbers) == 5
    losses = [line["valid_loss"] for line in run.metrics() if line["event"] == "epoch"]
    assert numbers[0]["epochs"]["valid_loss"] == losses
    assert [layer["attention"] for layer in numbers[4]["layers"]] == ["decoder.0.cross", "decoder.1.cross"]


def test_a_folder_that_does_not_exist(run: Run, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*nowhere/page.html: no such file or directory"):
        write_report(run, tmp_path / "nowhere" / "page.html")
