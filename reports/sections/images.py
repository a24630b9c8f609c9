"""Images of the data: a gallery per class, sizes, formats, brightness, duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.bars import Histogram, histogram_chart
from reports.charts.scale import Axis
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
class Duplicates:
    """Images that are equal, or nearly."""

    title: str
    summary: str
    is_leak: bool
    groups: list[Row]


@dataclass(frozen=True)
class ImageView:
    """One image feature."""

    name: str
    sensitive: bool
    table: Table
    brightness: Markup | None
    gallery: list[Row]
    classes_left_out: int
    duplicates: list[Duplicates]


@dataclass(frozen=True)
class ImagesView:
    """All image features, and what was read of the data for them."""

    features: list[ImageView]
    bound: str
    is_private: bool


def build(run: RunData) -> ImagesView | None:
    """Returns the view; None if the record has no samples of images."""
    artifacts = [
        item for item in run.artifacts("samples") if item["features"] or item["private"]
    ]
    if not artifacts:
        return None
    features = [item for artifact in artifacts for item in artifact["features"]]
    return ImagesView(
        features=[_view(i, feature) for i, feature in enumerate(features)],
        bound=" ".join(_bound(item) for item in artifacts if item["splits"]),
        is_private=any(artifact["private"] for artifact in artifacts),
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


def _bound(artifact: dict[str, Any]) -> str:
    """Returns how much of the data was read, in a sentence."""
    parts = []
    for split in artifact["splits"]:
        of = "all" if split["complete"] else "the first"
        parts.append(f"{of} {split['records']:,} records of {split['split']}")
        if split["decoded"] < split["records"]:
            parts[-1] += f", {split['decoded']:,} of them decoded"
    limits = artifact["limits"]
    return (
        f"Read: {'; '.join(parts)}. Limits: {limits['seconds']:g} s in all, "
        f"{limits['hashed_records']:,} records compared and {limits['records']:,} "
        "decoded per split."
    )


def _view(index: int, feature: dict[str, Any]) -> ImageView:
    splits = feature["splits"]
    histograms = [
        Histogram(str(split["split"]), found["edges"], found["counts"], i % 4)
        for i, split in enumerate(splits)
        if split["images"] and (found := split["brightness"])
    ]
    brightness = None
    if histograms:
        axis = Axis("mean gray value of an image", 0.0, 255.0)
        title = f"Brightness of {feature['name']}"
        brightness = histogram_chart(title, histograms, axis)
    return ImageView(
        name=feature["name"],
        sensitive=feature["sensitive"],
        table=_table(index, feature["name"], splits),
        brightness=brightness,
        gallery=[
            Row(name, [picture(image, name) for image in row["images"]])
            for row in feature["gallery"]
            for name in ["no label" if row["class"] is None else str(row["class"])]
        ],
        classes_left_out=feature["classes_left_out"],
        duplicates=[
            _duplicates(kind, found)
            for kind in ("exact", "near")
            if (found := feature["duplicates"].get(kind))
        ],
    )


def _table(index: int, name: str, splits: Sequence[dict[str, Any]]) -> Table:
    columns: Header = ["Split", numbers("Images"), numbers("Not decodable"), "Formats"]
    columns += ["Channels", "Width x height"]
    columns += [numbers("Median size", "B"), numbers("Largest", "B")]
    rows = [
        (
            split["split"],
            split["images"],
            split["undecodable"],
            _counted(split["formats"]),
            _counted(split["channels"]),
            _sizes(split),
            *((split["bytes"] or {}).get(key) for key in ("median", "max")),
        )
        for split in splits
    ]
    caption = f"Images of {formats.shorten(name, 80)}"
    return Table(f"images-{index}", caption, columns, rows)


def _counted(counts: dict[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def _sizes(split: dict[str, Any]) -> str:
    sizes = split["sizes"]
    found = {f"{item['width']} x {item['height']}": item["count"] for item in sizes}
    text = _counted(dict(list(found.items())[:_MAX_SIZES]))
    more = len(sizes) - _MAX_SIZES + split["sizes_left_out"]
    return f"{text} and {more:,} more" if more > 0 else text


def _duplicates(kind: str, found: dict[str, Any]) -> Duplicates:
    name = "equal" if kind == "exact" else "nearly equal"
    compared = f"of {formats.plural(found['compared'], 'image')} that were compared"
    summary = f"No two images are {name}, {compared}."
    if found["groups"]:
        summary = (
            f"{formats.plural(found['images'], 'image')} in "
            f"{formats.plural(found['groups'], 'group')}, {compared}; "
            f"{formats.plural(found['across_splits'], 'group')} across splits, "
            f"{found['across_classes']:,} across classes."
        )
    groups = []
    for group in found["examples"]:
        images = group["images"]
        splits = dict.fromkeys(str(image["split"]) for image in images)
        pictures = [picture(image, f"class {image.get('class')}") for image in images]
        groups.append(Row(" and ".join(splits), pictures, group["images_left_out"]))
    is_leak = bool(found["across_splits"])
    return Duplicates(f"{name.capitalize()} images", summary, is_leak, groups)
