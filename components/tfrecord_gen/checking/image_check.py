"""What one feature's images must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Those that training decodes, as ``image_format`` names them.
ImageFormat = Literal["png", "jpeg", "bmp", "gif"]


@dataclass(frozen=True)
class ImageCheck:
    """A feature that holds encoded images, and their limits.

    Attributes:
        feature: name of the bytes feature.
        min_side: fewest pixels of width and of height.
        max_side: most pixels of width and of height.
        max_pixels: most pixels in all; told before anything is decoded.
        channels: of the encoded image: 1 gray, 3 colour, 4 with alpha; None: any.
        decoded_channels: what training decodes it to.
        formats: those allowed.
        is_sensitive: whether none of its bytes may be shown.
    """

    feature: str
    min_side: int = 1
    max_side: int = 16_384
    max_pixels: int = 50_000_000
    channels: int | None = None
    decoded_channels: int = 3
    formats: tuple[ImageFormat, ...] = ("png", "jpeg", "bmp")
    is_sensitive: bool = False
