"""Pictures from files, as grey values: any size up to a limit, any mode, with or without transparency.

The size stands in a picture's header, so one that is too large is refused before any pixel is read. What
is read is made smaller at once, and memory stays bounded by ``MOST_PIXELS``.
"""

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from numpy import ndarray
from PIL import Image, ImageOps, UnidentifiedImageError

from attnlab.data.choices import ENDINGS
from attnlab.errors import InputError, brief

MOST_PIXELS = 50_000_000
MOST_BYTES = 2**27
"""Of a picture on standard input."""
LONGEST = 1024
"""Pixels along a side after which a picture is made smaller; a digit needs 20."""
_BAND = 2**20
"""Pixels that are converted together: a picture of the largest size in several modes takes all memory."""
_SIXTEEN_BITS = 65_535
_STDERR = 2
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")

Grey = Float[ndarray, "H W"]


def pictures_in(folder: Path) -> list[Path]:
    """The pictures directly in ``folder``, by name."""
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if not found:
        raise InputError(
            f"folder {brief(str(folder))} holds no picture; known endings: {' '.join(ENDINGS)}"
        )
    return found


def read_picture(source: Path | bytes, name: str) -> Grey:
    """Grey values from 0 (black) to 1 (white) of the picture in a file or in bytes."""
    return _read(source, name, _grey)


def read_pixels(source: Path | bytes, name: str) -> UInt8[ndarray, "H W *C"]:
    """A picture as it is, in grey or in colour, with white behind what is transparent."""
    return _read(source, name, _pixels)


def _pixels(image: Image.Image) -> UInt8[ndarray, "H W *C"]:
    if image.mode.startswith(("I", "F")):
        return np.rint(255 * _grey(image)).astype(np.uint8)
    mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
    (width, height), clear = image.size, image.has_transparency_data
    rows = max(1, _BAND // width)
    bands = (image.crop((0, top, width, min(top + rows, height))) for top in range(0, height, rows))
    return np.concatenate([np.asarray(_on_white(band, mode, clear=clear)) for band in bands])


def _on_white(image: Image.Image, mode: str, *, clear: bool) -> Image.Image:
    """Part of a picture in a mode without transparency."""
    if clear:
        above = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), above)
    return image if image.mode == mode else image.convert(mode)


def _read(source: Path | bytes, name: str, taken: Callable[[Image.Image], ndarray]) -> ndarray:
    try:
        with _quietly(source), _opened(source, name) as opened:
            width, height = opened.size
            if width * height > MOST_PIXELS:
                size = f"{width:,} x {height:,} pixels, more than {MOST_PIXELS:,}"
                raise InputError(f"picture {brief(name)} is {size}; make it smaller")
            ImageOps.exif_transpose(opened, in_place=True)
            return taken(opened)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"picture {brief(name)} does not exist") from error
    except IsADirectoryError as error:
        raise InputError(f"{brief(name)} is a folder, not a picture") from error
    except UnidentifiedImageError as error:
        raise InputError(
            f"{brief(name)} is not a picture, despite its name; known kinds: {', '.join(_FORMATS)}"
        ) from error
    except Exception as error:  # decoders of damaged files raise many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"picture {brief(name)} cannot be read ({reason})") from error


@contextmanager
def _quietly(source: Path | bytes) -> Iterator[None]:
    """Without Pillow's warnings of odd parts, and without those that libtiff writes to standard error: what
    matters of a damaged picture is an error.
    """
    with warnings.catch_warnings(action="ignore"):
        if _head(source, 4) not in (b"II*\0", b"MM\0*"):
            yield
            return
        kept, nowhere = os.dup(_STDERR), os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, _STDERR)
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            os.close(nowhere)


def _head(source: Path | bytes, size: int) -> bytes:
    if isinstance(source, bytes):
        return source[:size]
    with source.open("rb") as file:
        return file.read(size)


def _opened(source: Path | bytes, name: str) -> Image.Image:
    """The header of a picture of any size: Pillow's own limit would not tell the size that it refuses.

    It stays for WebP, whose decoder takes memory for all pixels as soon as it is made.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    if _head(source, 12).endswith(b"WEBP"):
        Image.MAX_IMAGE_PIXELS = MOST_PIXELS // 2  # an error is twice as much
    try:
        return Image.open(file, formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise InputError(
            f"picture {brief(name)} has more than {MOST_PIXELS:,} pixels; make it smaller"
        ) from error
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _grey(image: Image.Image) -> Grey:
    if image.mode.startswith(("I", "F")):
        values = np.asarray(_smaller(image, "F"), dtype=np.float64)
        low, high = float(values.min()), float(values.max())
        if image.mode.startswith("I") and low >= 0 and high <= _SIXTEEN_BITS:
            return values / _SIXTEEN_BITS
        # A scale that the picture itself must tell.
        if not np.isfinite(high - low):
            raise ValueError("values that are no numbers")
        return (values - low) / (high - low) if high > low else np.zeros_like(values)
    if image.has_transparency_data:
        return _laid_on_paper(np.asarray(_smaller(image, "RGBA").convert("LA")))
    return np.asarray(_smaller(image, "L"), dtype=np.float64) / 255


def _smaller(image: Image.Image, mode: str) -> Image.Image:
    """The picture in another mode, and in the size that is needed; never a copy for nothing."""
    converted = image if image.mode == mode else image.convert(mode)
    factor = max(image.size) // LONGEST
    return converted.reduce(factor) if factor > 1 else converted


def edge_of(values: ndarray) -> ndarray:
    """What stands in the first and last row and column."""
    return np.concatenate([values[0], values[-1], values[:, 0], values[:, -1]])


def _laid_on_paper(values: UInt8[ndarray, "H W 2"]) -> Grey:
    """Transparent pictures on a background: that of their edge, or what stands out against their ink."""
    grey, opaque = values[..., 0] / 255, values[..., 1] / 255
    edge = edge_of(opaque) > 0.5
    if edge.mean() > 0.5:
        paper = float(np.median(edge_of(grey)[edge]))
    else:
        ink = float((grey * opaque).sum() / max(opaque.sum(), 1e-9))
        paper = 1.0 if ink < 0.5 else 0.0
    return grey * opaque + paper * (1 - opaque)
