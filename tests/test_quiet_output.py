"""What does not fit a terminal, a figure or a folder is dealt with in one sentence, or without any."""

import os
import struct
import subprocess
import sys
import warnings
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attnlab import study
from attnlab.analysis.analyses import analyse_run
from attnlab.data.pictures import read_picture, read_pixels
from attnlab.errors import InputError, RunError, StorageError
from attnlab.figures.style import PlainPowers, new_axes, plain_power, to_png, to_svg
from attnlab.runs import create_run
from attnlab.runs.folder import NotKeptWarning
from attnlab.training import train_run
from commands import attnlab
from tiny import tiny
from tiny_jobs import AtOnce

NAMES = ("$x^$", "$\\frac{$", "a $b$ c", "50% of $5 or $6", "\\$", "$$")


def test_names_in_figures_are_no_formulas() -> None:
    """Titles, labels, legends, and ticks that come when the figure is drawn."""
    for name in NAMES:
        figure, axes = new_axes(3, 2)
        axes.set(title=name, xlabel=name)
        axes.plot([1, 2], label=name)
        axes.legend()
        axes.set_xticks([0, 1], labels=[name, "other"])
        axes.text(0, 1, name)
        figure.suptitle(name)
        drawn = to_svg(figure)
        assert drawn.count(f">{name}<") == 6
        assert to_png(figure).startswith(b"\x89PNG")


def test_powers_on_logarithmic_axes_are_plain_text() -> None:
    figure, axes = new_axes(3, 2)
    axes.plot([0.002, 900.0])
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    axes.set_xlim(1, 300)
    drawn = to_svg(figure)
    assert "mathdefault" not in drawn
    assert ">10⁻²<" in drawn
    assert ">2⁴<" in drawn
    assert plain_power("$\\mathdefault{2\\times10^{-3}}$") == "2×10⁻³"
    assert PlainPowers()(1e-12) == "10⁻¹²"


def tiff(tags: int) -> bytes:
    """A compressed picture with tags that nobody knows, and with a wrong length of one."""
    file = BytesIO()
    Image.fromarray(np.eye(30, dtype=np.uint8) * 200).save(file, "TIFF", compression="tiff_lzw")
    content = bytearray(file.getvalue())
    (start,) = struct.unpack_from("<I", content, 4)
    (count,) = struct.unpack_from("<H", content, start)
    for place in range(count - tags, count):
        struct.pack_into("<HHI", content, start + 2 + 12 * place, 60_000 - place, 2, 2**20)
    return bytes(content)


def test_what_pillow_and_libtiff_warn_of_stays_with_them(capfd: pytest.CaptureFixture[str]) -> None:
    for tags in range(6):
        for read in (read_picture, read_pixels):
            with warnings.catch_warnings(action="error"), suppress(InputError):
                read(tiff(tags), "x")
    assert capfd.readouterr() == ("", "")
    os.write(2, b"standard error is there again")
    assert capfd.readouterr().err == "standard error is there again"


@pytest.mark.filterwarnings("default::attnlab.runs.folder.NotKeptWarning")
def test_what_cannot_be_kept_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is read only; a study, which needs it kept, says that it is not."""
    run = create_run(tmp_path / "run", tiny())
    train_run(run)

    def refuse(path: Path, content: bytes) -> None:
        raise StorageError(f"cannot write {path}: read-only file system")

    monkeypatch.setattr("attnlab.storage._write_temporary", refuse)
    done = attnlab("evaluate", "run", cwd=tmp_path)
    assert "exact match" in done.stdout
    assert done.stderr.count("read-only file system") == done.stderr.count("\n")
    assert "not kept: cannot write " in done.stderr
    refused = attnlab("evaluate", "run", "--out", "figures", cwd=tmp_path, code=2)
    assert "exact match" in refused.stdout
    with (
        pytest.warns(NotKeptWarning),
        pytest.raises(StorageError, match=r"evaluate-valid found .* not be kept"),
    ):
        analyse_run(run, "evaluate-valid")


def test_a_study_whose_runs_cannot_be_written_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: that is no interruption."""

    def full(*_: object) -> None:
        raise StorageError("cannot write x: no space left on device")

    monkeypatch.setattr("attnlab.studies.conduct.open_executor", lambda pool, **_: AtOnce(pool))
    monkeypatch.setattr("attnlab.studies.worker._train_and_analyse", full)
    wanted = study("tiny-shared", seeds=1, catalogue=Path(__file__).parent / "tiny_studies.py")
    said = r"^0 of 1 runs of study tiny-shared finished; the last one that failed: cannot write .* no space"
    with pytest.raises(RunError, match=said):
        wanted.run(workers=1, pool=tmp_path / "pool", out=tmp_path / "out")


def test_the_list_of_runs_with_nobody_to_read_it(tmp_path: Path) -> None:
    (tmp_path / "runs" / "x\x1b[31m").mkdir(parents=True)
    (tmp_path / "runs" / "x\x1b[31m" / "spec.json").write_text("{}")
    script = f"{sys.executable} -c 'from attnlab.cli.main import main; main()' runs >&-"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
