"""Whether encoded bytes are an image that training can decode.

The size that the header declares is compared with the limits before anything is
decoded, so a small file that declares a huge image costs nothing. What is decoded are
bytes, never floats; a JPEG at an eighth of its size, which still reads all of its data.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterator

from PIL import Image

from components.tfrecord_gen.checking.image_check import ImageCheck
from sluice.records.image_format import image_format
from sluice.records.tf_example_proto import parse

_CHANNELS = {
    "1": 1,
    "L": 1,
    "I": 1,
    "I;16": 1,
    "LA": 2,
    "P": 3,
    "RGB": 3,
    "CMYK": 3,
    "RGBA": 4,
}


def check_images(record: bytes, checks: tuple[ImageCheck, ...]) -> str | None:
    """Returns what is wrong with the images of a tf.Example, None if nothing is.

    A feature that is missing or has no values is the schema's matter.
    """
    features = parse(record).features.feature
    for check in checks:
        if check.feature not in features:
            continue
        feature = features[check.feature]
        if feature.WhichOneof("kind") not in ("bytes_list", None):
            return f"feature {check.feature!r} holds numbers, not encoded images"
        for data in feature.bytes_list.value:
            if reason := check_image(data, check):
                return f"feature {check.feature!r}: {reason}"
    return None


def check_image(data: bytes, check: ImageCheck) -> str | None:
    """Returns what is wrong with an encoded image, None if nothing is."""
    name = image_format(data)
    if name is None or name not in check.formats:
        return _refusal(name, data, check)
    kind = name.upper()
    try:
        with _at_most(check.max_pixels):
            image = Image.open(io.BytesIO(data), formats=[kind])
            if reason := _beyond_limits(image, check):
                return f"a {kind} image {reason}"
            _decode(image, data)
    except Image.DecompressionBombError as error:
        # Before the size is known here: a GIF's pixels take memory once it is opened.
        found = re.search(r"\d+", str(error))
        count = f"{int(found[0]):,}" if found else "too many"
        return f"a {kind} image of {count} pixels{_allowed(check)}"
    except Exception as error:  # Damaged bytes make Pillow raise nearly anything.
        what = f"a {kind} image that does not decode"
        if check.is_sensitive:
            return what
        return f"{what}: {error or type(error).__name__}"
    return None


def _refusal(name: str | None, data: bytes, check: ImageCheck) -> str:
    allowed = _joined([item.upper() for item in check.formats])
    if name is not None:
        return f"a {name.upper()} image, where {allowed} is allowed"
    first = data[:8].hex(" ") or "none, it is empty"
    shown = "" if check.is_sensitive else f"; its first bytes: {first}"
    return f"not a {allowed} image{shown}"


def _joined(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _allowed(check: ImageCheck) -> str:
    return f"; at most {check.max_pixels:,} are allowed"


@contextlib.contextmanager
def _at_most(pixels: int) -> Iterator[None]:
    """Has Pillow refuse what is far beyond a limit of ours, instead of its own."""
    limit = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = pixels
    try:
        with warnings.catch_warnings():
            # It warns above the limit, which is told by us, and refuses twice of it.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _beyond_limits(image: Image.Image, check: ImageCheck) -> str | None:
    width, height = image.size
    size = f"of {width:,} x {height:,} pixels"
    if min(width, height) < check.min_side:
        return f"{size}; the shortest side allowed is {check.min_side:,}"
    if max(width, height) > check.max_side:
        return f"{size}; the longest side allowed is {check.max_side:,}"
    if width * height > check.max_pixels:
        return f"{size}{_allowed(check)}"
    channels = _CHANNELS.get(image.mode)
    if check.channels is not None and channels != check.channels:
        return f"with {channels or image.mode} channels, not {check.channels}"
    return None


def _decode(image: Image.Image, data: bytes) -> None:
    if image.format == "PNG":
        # Only this looks at the checksums of the chunks; it leaves the image unusable.
        image.verify()
        image = Image.open(io.BytesIO(data), formats=["PNG"])
    # Pillow divides by what is asked for.
    image.draft(None, (max(1, image.width // 8), max(1, image.height // 8)))
    image.load()
