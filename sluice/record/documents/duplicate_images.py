"""Groups equal and nearly equal images, within a split and across splits.

An image in the training data and in the data that a model is judged by makes the model
look better than it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sluice.record.documents.image_sample import ImageSample

MAX_GROUPS = 10
MAX_GROUP_IMAGES = 6
# Bits of the difference hash, of 64.
MAX_DISTANCE = 3
# Mean difference of the 9 x 8 gray values, apart from brightness. The hash alone finds
# 2,140 pairs in 1,500 digits of 8 x 8 pixels, none of which are duplicates (nor closer
# than 4).
MAX_GRAY_DIFFERENCE = 4
_BANDS, _BAND_BITS = MAX_DISTANCE + 1, 16
_MAX_COMPARISONS = 200_000


class Place(NamedTuple):
    """Where an image is.

    Attributes:
      split: its split.
      file: relative to the artifact.
      record: number in the file, from 1.
      label: its class; None if unknown.
      digest: SHA-256 of the encoded image.
    """

    split: str
    file: str
    record: int
    label: Any
    digest: bytes


@dataclass
class Duplicates:
    """Images seen so far, by their digests, and the groups of duplicates."""

    places: dict[bytes, list[Place]] = field(default_factory=lambda: defaultdict(list))
    _samples: list[tuple[Place, ImageSample]] = field(default_factory=list)

    def add(self, place: Place) -> bool:
        """Adds an image; returns whether no equal one was there."""
        self.places[place.digest].append(place)
        return len(self.places[place.digest]) == 1

    def add_sample(self, place: Place, sample: ImageSample) -> None:
        """Adds a decoded image, to be compared with the others."""
        if sample.hash is not None:
            self._samples.append((place, sample))

    def exact(self) -> list[list[Place]]:
        """Returns the groups of equal images."""
        return [places for places in self.places.values() if len(places) > 1]

    def compared(self) -> int:
        """Returns how many images ``near`` compares."""
        return len(self._samples)

    def near(self) -> list[tuple[int, list[Place]]]:
        """Returns groups of nearly equal images, with the largest distance.

        Each image joins the first that it is near to. Two hashes that differ in at most
        three bits are equal in at least one of four bands, so only images that share a
        band are compared, up to a limit.
        """
        firsts: list[tuple[Place, ImageSample]] = []
        by_band: dict[tuple[int, int], list[int]] = defaultdict(list)
        groups: dict[int, tuple[int, list[Place]]] = {}
        left = _MAX_COMPARISONS
        for place, sample in self._samples:
            bands = _bands(sample)
            candidates = dict.fromkeys(n for band in bands for n in by_band[band])
            left -= len(candidates)
            if left < 0:
                break
            for number in candidates:
                distance = _distance(firsts[number][1], sample)
                if distance is not None:
                    largest, places = groups.get(number, (0, [firsts[number][0]]))
                    groups[number] = (max(largest, distance), [*places, place])
                    break
            else:
                for band in bands:
                    by_band[band].append(len(firsts))
                firsts.append((place, sample))
        return list(groups.values())


def _bands(sample: ImageSample) -> list[tuple[int, int]]:
    """Returns the parts of a hash, each with its number."""
    found, mask = sample.hash or 0, (1 << _BAND_BITS) - 1
    return [(i, found >> _BAND_BITS * i & mask) for i in range(_BANDS)]


def _distance(one: ImageSample, other: ImageSample) -> int | None:
    """Returns how many bits of the hashes differ; None if not nearly equal."""
    assert one.hash is not None and other.hash is not None
    distance = (one.hash ^ other.hash).bit_count()
    if distance > MAX_DISTANCE:
        return None
    shift = one.brightness - other.brightness
    pairs = zip(one.gray, other.gray, strict=True)
    difference = sum(abs(a - b - shift) for a, b in pairs) / len(one.gray)
    return distance if difference <= MAX_GRAY_DIFFERENCE else None


def describe_groups(
    groups: Sequence[tuple[int | None, list[Place]]],
    compared: int,
    describe: Callable[[Place], Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Returns the numbers of groups, and the first of them, those across splits first.

    Args:
      groups: each with its largest distance, None for equal images.
      compared: the number of images that were compared.
      describe: returns the description of an image; None for counts only.
    """
    first = sorted(groups, key=lambda group: (not _is_across(group[1]), group[0]))
    return {
        "compared": compared,
        "groups": len(groups),
        "images": sum(len(places) for _, places in groups),
        "across_splits": sum(_is_across(places) for _, places in groups),
        "across_classes": sum(
            len({place.label for place in places} - {None}) > 1 for _, places in groups
        ),
        "examples": [
            {
                **({} if distance is None else {"distance": distance}),
                "images": [describe(place) for place in _spread(places)],
                "images_left_out": max(0, len(places) - MAX_GROUP_IMAGES),
            }
            for distance, places in first[:MAX_GROUPS]
        ]
        if describe
        else [],
    }


def _is_across(places: Iterable[Place]) -> bool:
    return len({place.split for place in places}) > 1


def _spread(places: Sequence[Place]) -> list[Place]:
    """Returns the places to show: the first of each split, then the others."""
    firsts = {place.split: place for place in reversed(places)}
    rest = [place for place in places if firsts[place.split] is not place]
    return [*reversed(firsts.values()), *rest][:MAX_GROUP_IMAGES]
