"""Limits on images: formats, channels, sides and pixels."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.config_section import Channels, Count, NotEmpty, Section, Text

# Those that training decodes, as ``image_format`` names them.
ImageFormat = Literal["png", "jpeg", "bmp", "gif"]


class ImageLimits(Section):
    """Limits of an image, which must also be decodable by TensorFlow.

    The size is read from the header, so images that are too large are not decoded.
    """

    min_side: Count = Field(
        default=1,
        description="Minimum length of the shorter side, in pixels.",
    )
    max_side: Count = Field(
        default=16_384,
        description="Maximum length of the longer side, in pixels.",
    )
    max_pixels: Count = Field(
        default=50_000_000,
        description="Maximum height times width, so that a small file cannot fill the "
        "memory.",
    )
    channels: Channels | None = Field(
        default=None,
        description="Channels of the encoded image: 1 gray, 3 colour, 4 with alpha. "
        "null: any, as training decodes all to what `features` says.",
    )
    formats: NotEmpty[tuple[ImageFormat, ...]] = Field(
        default=("png", "jpeg", "bmp"),
        description="Formats that are allowed. A `gif` gives its first frame.",
    )


class ImageCheck(ImageLimits):
    """A feature that holds encoded images, and their limits.

    Attributes:
        feature: name of the bytes feature.
        decoded_channels: channels that training decodes it to.
        is_sensitive: whether its bytes are withheld.
    """

    feature: Text
    decoded_channels: Channels = Field(default=3)
    is_sensitive: bool = False
