"""Images of any kind: 26 letters in colour go through the commands; folders and files that are wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from attnlab.data.idx import write_images, write_labels
from attnlab.data.image_files import load_images
from attnlab.errors import InputError, SpecError
from attnlab.models import build_for, build_model
from attnlab.pictures import Pictures
from attnlab.registry import register
from attnlab.runs import open_run
from attnlab.specs import CNNModel, MLPModel, PatchAttentionModel, PatchSeq2SeqModel, Spec, VitModel
from commands import apart, attnlab, complaint

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))
from letters import draw_letters  # type: ignore[import-not-found]  # noqa: E402

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
FEW = {
    "model.width": 32,
    "model.hidden": 64,
    "model.layers": 2,
    "model.patch": 8,
    "model.stem": "conv",
    "training.epochs": 15,
    "training.batch": 16,
    "training.lr": 0.003,
    "scaling": "standard",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of letters, and a run that learned a little of them."""
    home = tmp_path_factory.mktemp("letters")
    draw_letters(home / "pictures", each=36)
    task = str(ROOT / "examples" / "letters.py")
    flags = [f"--{key}={value}" for key, value in FEW.items()]
    attnlab(
        "train",
        task,
        "--directory",
        "pictures",
        "--out",
        "run",
        "--json",
        *flags,
        cwd=home,
    )
    return home


def test_letters_are_learned_and_a_run_opens_from_another_folder(home: Path, tmp_path: Path) -> None:
    spec = open_run(str(home / "run")).spec()
    assert isinstance(spec.task, Pictures)
    assert spec.task.directory == str(home / "pictures")
    assert (spec.task.classes, spec.task.image_shape) == (LETTERS, (3, 32, 32))
    found = json.loads(attnlab("evaluate", str(home / "run"), "--json", cwd=tmp_path).stdout)
    assert found["examples"] == 26 * 6
    assert found["classes"] == list(LETTERS)
    assert found["exact_match"] > 0.4
    assert [row["name"] for row in found["by_class"]] == list(LETTERS)
    assert sum(map(sum, found["confusion"])) == 26 * 6
    worst = found["mistakes"]["worst"]
    assert {row["labelled"] for row in worst} <= set(LETTERS)
    assert (home / "run" / "figures" / "test-confusions.svg").exists()
    table = attnlab("evaluate", str(home / "run"), cwd=tmp_path).stdout
    assert "most often taken for" in table


def test_pictures_are_named_by_their_class(home: Path) -> None:
    (answer,) = json.loads(attnlab("predict", "run", "pictures/K/3.png", "--json", cwd=home).stdout)
    assert answer["output"] in LETTERS
    assert len(answer["probabilities"][0]) == 26
    (own,) = json.loads(attnlab("predict", "run", "test:5", "--json", cwd=home).stdout)
    data = load_images(str(home / "pictures"))
    assert own["truth"] == LETTERS[data.test_labels[5]]
    assert own["correct"] is (own["truth"] == own["output"])
    shown = json.loads(attnlab("show", "run", "--samples", "3", "--json", cwd=home).stdout)
    assert [len(sample["picture"]) for sample in shown["samples"]] == [8, 8, 8]
    assert all(sample["truth"] in LETTERS for sample in shown["samples"])
    assert "⠀" in attnlab("show", "run", "--samples", "2", cwd=home).stdout


def test_a_built_in_task_takes_a_folder(home: Path) -> None:
    register(Pictures)
    task = Pictures(directory=str(home / "pictures")).settled()
    assert (task.vocabulary, task.shape, task.names) == (26, (3, 32, 32), LETTERS)
    splits = task.splits(0)
    assert splits.train.inputs[0].shape[1:] == (3, 32, 32)
    assert len(splits.train) + len(splits.valid) == 26 * 30
    with pytest.raises(SpecError, match=r"model.patch is 5, but it must be a divisor of 32: \[1, 2, 4"):
        Spec(task=task, model=VitModel(patch=5))
    with pytest.raises(SpecError, match=r"engine explicit knows grey images of 28 x 28 pixels only"):
        Spec(task=task, model=PatchAttentionModel(), engine="explicit")
    with pytest.raises(SpecError, match=r"task\.directory is empty"):
        Pictures().splits(0)


@pytest.mark.parametrize(
    "model",
    [
        VitModel(width=8, heads=2, layers=1, patch=4),
        VitModel(width=8, heads=2, layers=1, patch=4, stem="conv"),
        PatchAttentionModel(patch=8),
        MLPModel(hidden=5),
        CNNModel(filters=2),
    ],
)
@pytest.mark.parametrize("shape", [(1, 20, 12), (3, 12, 20)])
def test_models_take_any_image(
    model: VitModel | PatchAttentionModel | MLPModel | CNNModel, shape: tuple[int, int, int]
) -> None:
    if isinstance(model, PatchAttentionModel):
        model = PatchAttentionModel(patch=4)
    built = build_model(model, vocabulary=7, image=shape)
    images = torch.rand(3, *(shape if shape[0] == 3 else shape[1:]))
    assert built(images).shape == (3, 7)


@pytest.mark.parametrize("bridge", ["memory", "cells"])
def test_grids_have_cells_of_any_size(bridge: str) -> None:
    spec = PatchSeq2SeqModel(rows=2, columns=3, width=8, heads=2, patch=4, bridge=bridge)  # type: ignore[arg-type]
    built = build_model(spec, vocabulary=7, image=(3, 8, 12))
    assert built(torch.rand(5, 3, 16, 36), torch.zeros(5, 6, dtype=torch.long)).shape == (5, 6, 7)


def _save(path: Path, size: tuple[int, int] = (8, 8), colour: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(colour, size, 9 if colour == "L" else (9, 8, 7)).save(path)


def _two_classes(folder: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(12):
            _save(folder / name / f"{number}.png")


def test_train_and_test_folders_stand_as_they_are(tmp_path: Path) -> None:
    _two_classes(tmp_path / "train")
    _save(tmp_path / "test" / "dog" / "1.png", colour="L")
    data = load_images(str(tmp_path))
    assert (data.classes, len(data.train_labels)) == (("cat", "dog"), 24)
    assert data.test_labels.tolist() == [1]
    assert data.train_images.shape == (24, 3, 8, 8)
    assert data.test_images[0, :, 0, 0].tolist() == [9, 9, 9]


def test_arrays_and_idx_of_any_size(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (30, 5, 7, 3), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", images=images, labels=np.arange(30) % 3, classes=["a", "b", "c"])
    data = load_images(str(tmp_path / "set.npz"))
    assert data.classes == ("a", "b", "c")
    assert (data.train_images.shape, len(data.test_labels)) == ((25, 3, 5, 7), 5)
    folder = tmp_path / "idx"
    folder.mkdir()
    grey, labels = torch.randint(256, (11, 6, 9), dtype=torch.uint8), torch.arange(11).to(torch.uint8)
    for part in ("train", "t10k"):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(write_images(grey))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(write_labels(labels))
    data = load_images(str(folder))
    assert torch.equal(data.train_images, grey)
    assert data.classes == tuple(map(str, range(11)))


def test_tables_tell_the_names_of_classes(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    _save(tmp_path / "one.png")
    content = (tmp_path / "one.png").read_bytes()
    kept = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    for part, labels in (("train", [0, 1, 1]), ("test", [1, 0, 0])):
        images = pa.array([{"bytes": content}] * 3, type=pa.struct({"bytes": pa.binary()}))
        table = pa.table({"image": images, "label": pa.array(labels)})
        table = table.replace_schema_metadata({"huggingface": json.dumps(kept)})
        parquet.write_table(table, tmp_path / f"{part}-0.parquet")
    data = load_images(str(tmp_path))
    assert (data.classes, data.test_labels.tolist()) == (("cat", "dog"), [1, 0, 0])
    assert data.train_images.shape == (3, 3, 8, 8)


def test_wrong_folders_are_refused(tmp_path: Path) -> None:
    def refused(name: str) -> str:
        with pytest.raises(InputError) as error:
            load_images(str(tmp_path / name))
        return str(error.value)

    assert "is not a folder" in refused("none")
    (tmp_path / "empty").mkdir()
    assert "holds no images; it needs a folder of pictures for each class" in refused("empty")
    _two_classes(tmp_path / "void")
    (tmp_path / "void" / "fish").mkdir()
    assert "void/fish' holds no picture" in refused("void")
    for number in range(12):
        _save(tmp_path / "one" / "cat" / f"{number}.png")
    assert "has the classes 'cat'; there must be at least 2 different ones" in refused("one")
    _two_classes(tmp_path / "sizes")
    _save(tmp_path / "sizes" / "dog" / "x.png", size=(9, 8))
    assert "pixels, and others are" in refused("sizes")
    _two_classes(tmp_path / "broken")
    (tmp_path / "broken" / "cat" / "3.png").write_bytes(b"no picture")
    assert "broken/cat/3.png' is not a picture" in refused("broken")
    np.savez(tmp_path / "odd.npz", pictures=np.zeros(3))
    assert "holds pictures; it needs images and labels" in refused("odd.npz")
    np.savez(tmp_path / "pickled.npz", images=np.array([{}]), labels=np.zeros(1, dtype=int))
    assert "is not a readable npz file" in refused("pickled.npz")
    np.savez(tmp_path / "floats.npz", images=np.zeros((3, 4, 4)), labels=np.zeros(3, dtype=int))
    assert "it must be (N, Y, X) or (N, Y, X, 3) of uint8" in refused("floats.npz")


def test_the_command_refuses_a_folder_in_one_sentence(tmp_path: Path) -> None:
    task = str(ROOT / "examples" / "letters.py")
    said = complaint("train", task, "--directory", "nowhere", cwd=tmp_path)
    assert "'nowhere' is not a folder; name one that holds images" in said


def test_a_model_is_built_for_its_task(home: Path) -> None:
    task = Pictures(directory=str(home / "pictures"))
    model = build_for(Spec(task=task, model=MLPModel(hidden=5)))
    assert sum(each.numel() for each in model.parameters()) == 3 * 32 * 32 * 5 + 5 + 5 * 26 + 26


def test_a_run_keeps_the_file_of_its_task_and_opens_in_another_process(home: Path) -> None:
    assert (home / "run/task.py").read_text() == (ROOT / "examples/letters.py").read_text()
    words = ["predict", "run", "pictures/Q/3.png", "--json", "--trust"]
    said = json.loads(apart(*words, cwd=home).stdout)
    assert said[0]["input"].endswith("3.png")


def test_pictures_in_colour_are_explained_and_drawn(home: Path) -> None:
    words = ("explain", "run", "test:0", "--json", "--out", "explain-0.svg")
    told = json.loads(attnlab(*words, cwd=home).stdout)
    assert len(told["parts"]) == 16  # patches of 8 x 8 pixels
    assert told["output"] in LETTERS
    attnlab("maps", "run", "--out", "figures", cwd=home)
    (drawn,) = (home / "figures").glob("maps-*.json")
    (image,) = json.loads(drawn.read_text())["images"]
    assert np.shape(image["pixels"]) == (3, 32, 32)
    assert image["answer"] in LETTERS
    attnlab("patterns", "run", "--out", "figures", cwd=home)
    attnlab("project", "run", "--samples", "60", "--out", "figures", cwd=home)
    names = {path.name.split("-")[0] for path in (home / "figures").glob("*.svg")}
    assert names == {"maps", "patterns", "projection"}
    attnlab("report", "run", "--samples", "20", "--out", "page.html", cwd=home)
    page = (home / "page.html").read_text()
    assert "A model that reads images." in page
    sections = ("trained", "good", "heads", "maps", "reasons", "projections")
    assert [name for name in sections if f'id="{name}"' not in page] == []
