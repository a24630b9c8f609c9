"""Images of the data: a gallery per class, sizes and formats, equal images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reports import formats
from reports.read_run import RunData
from reports.tables import Header, Table, numbers

_MAX_SIZES = 5
# Smaller images are enlarged without smoothing, so that their pixels can be seen.
_PIXELATED_BELOW = 48


@dataclass(frozen=True)
class Picture:
    """A thumbnail; ``src`` is None if there is none.

    Attributes:
      src: a ``data:`` URI.
      alt: what it is, for those who do not see it.
      place: split, file and record.
      is_tiny: whether it is shown with its pixels.
      width: of the image, in pixels.
      height: likewise.
    """

    src: str | None
    alt: str
    place: str
    is_tiny: bool
    width: int
    height: int


@dataclass(frozen=True)
class Row:
    """Pictures that belong together, such as those of one class."""

    title: str
    pictures: list[Picture]
    more: int = 0


@dataclass(frozen=True)
class EqualImages:
    """Images that are equal."""

    summary: str
    is_leak: bool
    groups: list[Row]


@dataclass(frozen=True)
class ImageView:
    """One image feature."""

    name: str
    sensitive: bool
    table: Table
    gallery: list[Row]
    classes_left_out: int
    equal: EqualImages


@dataclass(frozen=True)
class ImagesView:
    """All image features, and what was read of the data for them."""

    features: list[ImageView]
    bound: str
    is_private: bool


def build(run: RunData) -> ImagesView | None:
    """Returns the view; None if the record has no samples of images."""
    artifacts = [
        item
        for item in run.documents("samples")
        if item["features"] or item["privacy"]["private"]
    ]
    if not artifacts:
        return None
    features = [
        (item, item["name"] in artifact["privacy"]["sensitive"])
        for artifact in artifacts
        for item in artifact["features"]
    ]
    return ImagesView(
        features=[_view(i, *feature) for i, feature in enumerate(features)],
        bound=" ".join(_bound(item) for item in artifacts if item["records"]),
        is_private=any(artifact["privacy"]["private"] for artifact in artifacts),
    )


def picture(image: dict[str, Any], what: str) -> Picture:
    """Returns a thumbnail of the record."""
    src = image.get("data")
    is_image = isinstance(src, str) and src.startswith("data:image/")
    size = f"{image['width']} x {image['height']}"
    known = [image.get("split"), image.get("file")]
    if "record" in image:
        known.append(f"record {image['record']:,}")
    place = ", ".join(str(item) for item in known if item)
    return Picture(
        src=src if is_image else None,
        alt=f"{formats.shorten(what, 60)}, {size} {image['format']}",
        place=formats.shorten(place, 200),
        is_tiny=max(image["width"], image["height"]) < _PIXELATED_BELOW,
        width=image["width"],
        height=image["height"],
    )


def _bound(document: dict[str, Any]) -> str:
    """Returns how much of the data was read, in a sentence."""
    read = [f"{count:,} of {split}" for split, count in document["records"].items()]
    which = "all records" if document["complete"] else "the first records"
    return f"Read: {which}, {' and '.join(read)}."


def _view(index: int, feature: dict[str, Any], is_sensitive: bool) -> ImageView:
    return ImageView(
        name=feature["name"],
        sensitive=is_sensitive,
        table=_table(index, feature["name"], feature["splits"]),
        gallery=[
            Row(name, [picture(image, name) for image in row["images"]])
            for row in feature["gallery"]
            for name in ["no label" if row["class"] is None else str(row["class"])]
        ],
        classes_left_out=feature["classes_left_out"],
        equal=_equal(feature["equal"]),
    )


def _table(index: int, name: str, splits: Sequence[dict[str, Any]]) -> Table:
    columns: Header = ["Split", numbers("Images"), "Width x height"]
    rows = [(split["split"], split["images"], _sizes(split)) for split in splits]
    caption = f"Images of {formats.shorten(name, 80)}"
    return Table(f"images-{index}", caption, columns, rows)


def _sizes(split: dict[str, Any]) -> str:
    sizes = split["sizes"]
    if len(sizes) == 1:
        return next(iter(sizes))
    shown = list(sizes.items())[:_MAX_SIZES]
    text = ", ".join(f"{name}: {count:,}" for name, count in shown)
    more = len(sizes) - len(shown) + split["sizes_left_out"]
    return f"{text} and {more:,} more" if more > 0 else text


def _equal(found: dict[str, Any]) -> EqualImages:
    summary = "No two images are equal."
    if found["groups"]:
        summary = (
            f"{formats.plural(found['images'], 'image')} in "
            f"{formats.plural(found['groups'], 'group')}, "
            f"{formats.plural(found['across_splits'], 'group')} across splits."
        )
    groups = []
    for group in found["examples"]:
        images = group["images"]
        splits = dict.fromkeys(str(image["split"]) for image in images)
        pictures = [picture(image, f"class {image.get('class')}") for image in images]
        groups.append(Row(" and ".join(splits), pictures, group["images_left_out"]))
    return EqualImages(summary, bool(found["across_splits"]), groups)
