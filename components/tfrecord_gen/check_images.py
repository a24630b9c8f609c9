"""Checks that encoded bytes are an image that training can decode.

The size in the header is compared with the limits first, so a small file that declares
a huge image is not decoded. Images within the limits are decoded by TensorFlow, as in
training. Beyond what TensorFlow rejects, images over the limits or without a size in
the header are rejected.
"""

from __future__ import annotations

from components.tfrecord_gen.settings import ImageCheck
from sluice.tfrecords.image_decoder import why_undecodable
from sluice.tfrecords.image_header import ImageHeader, image_format, image_header
from sluice.tfrecords.parse_tf_example import parse


def check_images(record: bytes, checks: tuple[ImageCheck, ...]) -> str | None:
    """Returns what is wrong with the images of a tf.Example; None if nothing is.

    Missing features are not errors here: the schema decides about them.
    """
    features = parse(record).features.feature
    for check in checks:
        if check.feature not in features:
            continue
        feature = features[check.feature]
        if feature.WhichOneof("kind") not in ("bytes_list", None):
            return f"feature {check.feature!r} contains numbers, not encoded images"
        for data in feature.bytes_list.value:
            if reason := check_image(data, check):
                return f"feature {check.feature!r}: {reason}"
    return None


def check_image(data: bytes, check: ImageCheck) -> str | None:
    """Returns what is wrong with an encoded image, None if nothing is."""
    name, header = image_format(data), image_header(data)
    if name is None or name not in check.formats:
        allowed = " or ".join(item.upper() for item in check.formats)
        if name is not None:
            return f"a {name.upper()} image, where {allowed} is allowed"
        first = data[:8].hex(" ") or "none, it is empty"
        shown = "" if check.is_sensitive else f"; its first bytes: {first}"
        return f"not a {allowed} image{shown}"
    kind = f"a {name.upper()} image"
    if header is None or not header.channels:
        return f"{kind} that does not decode: its header cannot be read"
    if reason := _beyond_limits(header, check):
        return f"{kind} {reason}"
    if why := why_undecodable(data, check.decoded_channels):
        what = f"{kind} that does not decode with channels={check.decoded_channels}"
        return what if check.is_sensitive else f"{what}: {why}"
    return None


def _beyond_limits(header: ImageHeader, check: ImageCheck) -> str | None:
    width, height = header.width, header.height
    size = f"of {width:,} x {height:,} pixels"
    if min(width, height) < check.min_side:
        return f"{size}; the shortest side allowed is {check.min_side:,}"
    if max(width, height) > check.max_side:
        return f"{size}; the longest side allowed is {check.max_side:,}"
    if width * height > check.max_pixels:
        return f"{size}; at most {check.max_pixels:,} are allowed"
    if check.channels not in (None, header.channels):
        return f"with {header.channels} channels, not {check.channels}"
    return None
