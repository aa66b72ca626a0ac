"""The task ``pictures``: telling the class of images from a folder, of any size and number of classes.

    attnlab train pictures --directory FOLDER

A task of one's own derives from ``Pictures`` and names its folder:

    @dataclass(frozen=True, kw_only=True)
    class Letters(Pictures):
        kind: ClassVar[str] = "letters"
        directory: str = "letters"
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from attnlab.errors import SpecError
from attnlab.images import ImageShape, LabelledImages
from attnlab.lazy import Later
from attnlab.specs.codec import later
from attnlab.specs.models import ModelSpec

if TYPE_CHECKING:
    from attnlab import specs
    from attnlab.data import image_files
    from attnlab.data.image_set import ImageSet
    from attnlab.specs import Spec
else:
    specs, image_files = Later("attnlab.specs"), Later("attnlab.data.image_files")


@dataclass(frozen=True, kw_only=True)
class Pictures(LabelledImages):
    """Telling the class of images from a folder, of any size, in grey or colour."""

    kind: ClassVar[str] = "pictures"
    paired_by: ClassVar[tuple[str, ...]] = ("directory", "test")

    directory: str = ""
    """A folder of pictures by class (train/CLASS/*.png), IDX or Parquet files, or an npz file."""
    shape: tuple[int, ...] = later(())
    """Channels, height and width; empty: as the images have. A run keeps them."""
    names: tuple[str, ...] = later(())
    """Names of the classes; empty: as the images have. A run keeps them."""

    @classmethod
    def presets(cls) -> "dict[str, Spec]":
        if cls().directory:
            return super().presets()
        model = specs.VitModel(width=64, hidden=256)
        training = specs.Training(
            epochs=30, batch=64, lr=2e-3, optimiser=specs.AdamW(weight_decay=0.1), schedule=specs.OneCycle()
        )
        return {"default": specs.Spec(task=cls(), model=model, training=training)}

    @cached_property
    def data(self) -> "ImageSet":
        if not self.directory:
            raise SpecError("task.directory is empty; name a folder of pictures by class")
        return image_files.load_images(self.directory)

    @property
    def image_shape(self) -> ImageShape:
        channels, height, width = self.shape or (1, *self.data.train_images.shape[1:])[-3:]
        return channels, height, width

    @property
    def classes(self) -> tuple[str, ...]:
        return self.names or self.data.classes

    def check_model(self, model: ModelSpec) -> None:
        """Refuse a model for other images, once it is known which they are."""
        if self.directory:
            super().check_model(model)

    def settled(self) -> "Pictures":
        folder = str(Path(self.directory).absolute())
        return replace(self, directory=folder, shape=self.image_shape, names=self.classes)
