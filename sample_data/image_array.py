"""Records of images in arrays, encoded as PNG."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sample_data import tf_example

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ImageArray:
    """Records with ``image``, a PNG, and ``label``, an integer.

    Attributes:
      pixels: uint8, of shape (images, height, width) or (images, height, width, 3).
      labels: integers, of shape (images,).
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> bytes:
        image = encode_png(self.pixels[position])
        return tf_example.encode(
            {"image": [image], "label": [int(self.labels[position])]}
        )


def encode_png(pixels: np.ndarray) -> bytes:
    """Encodes uint8 pixels as a PNG.

    Uncompressed, so that the bytes do not depend on the zlib version.
    """
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=0)
    return file.getvalue()
