"""Days of taxi trips: drawn from the sample data by a process that changes.

The trips are the sample's, and whether the tip is big is drawn anew by a rule. Trips of
a day depend on the day alone, so that each is the same in every benchmark. What is
delivered of them, and when, is a ``Delivery``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from sample_data.data_set import ALL
from sample_data.tables import TAXI
from sluice.project import own_root
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

RECORDS = 2000
SPLITS = {"train": 1600, "eval": 200, "test": 200}
SEED = 17
# Of the 30 days: between the first two, the first day of the others.
SLOW, NEW_COMPANY, SUDDEN = (8, 16), 18, 22
COMPANY = b"Lakeside Cabs"
# Fewer features, so that a month can be played in half an hour.
FEATURES = ("fare", "trip_miles", "trip_start_hour", "payment_type", "company")
LABEL = "big_tip"


@dataclass(frozen=True)
class Delivery:
    """The trips of a day, as they are delivered.

    Attributes:
      span: the day.
      version: of the delivery.
      state: ``part``: three quarters of the trips; ``values``: payment types in lower
        case, fares in cents; ``cut``: files that end in the middle.
      like: the day whose process draws the trips; None for the span.
    """

    span: int
    version: int = 1
    state: Literal["whole", "part", "values", "cut"] = "whole"
    like: int | None = None

    @property
    def is_bad(self) -> bool:
        return self.state in ("values", "cut")

    def folder(self, data: Path) -> Path:
        """Returns the folder below ``data`` that has a file of each split."""
        return data / f"day-{self.span}" / f"v{self.version}"

    def write(self, data: Path) -> None:
        """Writes the files, unless they are there."""
        folder = self.folder(data)
        if folder.exists():
            return
        part = data / ".part" / folder.parent.name / folder.name
        part.mkdir(parents=True, exist_ok=True)
        records, begin = draw(self.like or self.span), 0
        for split, count in SPLITS.items():
            kept = records[begin : begin + count]
            begin += count
            if self.state == "part":
                kept = kept[: count * 3 // 4]
            if self.state == "values":
                kept = [*map(_other_units, kept)]
            path = part / f"{split}.tfrecord"
            tfrecord.write(path, kept)
            if self.state == "cut":
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        folder.parent.mkdir(parents=True, exist_ok=True)
        part.rename(folder)


# Deliveries by day, and what is special of them; other days deliver their own span.
Days = Mapping[int, tuple[str, tuple[Delivery, ...]]]
DAYS: Days = {
    5: ("late", ()),
    7: ("day 5 comes", (Delivery(5), Delivery(7))),
    9: ("slow drift", (Delivery(9),)),
    12: ("bad values", (Delivery(12, state="values"),)),
    13: ("delivered again", (Delivery(12, 2), Delivery(13))),
    17: ("no data", ()),
    18: ("new company", (Delivery(18),)),
    20: ("incomplete", (Delivery(20, state="part"),)),
    21: ("delivered again", (Delivery(20, 2), Delivery(21))),
    22: ("sudden drift", (Delivery(22),)),
    26: ("cut files", (Delivery(26, state="cut"),)),
    27: ("delivered again", (Delivery(26, 2), Delivery(27))),
}


def deliveries(days: Days, day: int) -> tuple[Delivery, ...]:
    """Returns what is delivered on a day."""
    return days.get(day, ("", (Delivery(day),)))[1]


def window(days: Days, day: int, size: int) -> list[Delivery]:
    """Returns the newest spans of what has been delivered until a day."""
    newest: dict[int, Delivery] = {}
    for delivery in (x for past in range(1, day + 1) for x in deliveries(days, past)):
        known = newest.setdefault(delivery.span, delivery)
        if delivery.version > known.version:
            newest[delivery.span] = delivery
    return [newest[span] for span in sorted(newest)[-size:]]


def draw(day: int) -> list[bytes]:
    """Returns the trips of a day, as tf.Examples.

    Until day 8 few trips that are paid in cash have a big tip, and long trips and those
    at night have one more often. From day 9 to 16 fares rise by 40 %, and the effect of
    the length is reversed. From day 18 on a new company has a fifth of the trips and
    big tips. On day 22 three times as many pay by card, tips in cash become big, and
    the effect of the night is reversed.
    """
    source = _source()
    random = np.random.default_rng([SEED, day])
    slow = min(max((day - SLOW[0]) / (SLOW[1] - SLOW[0]), 0.0), 1.0)
    is_sudden = day >= SUDDEN
    weights = np.array([1 + 2 * is_sudden * _by_card(trip) for trip in source])
    chosen = random.choice(len(source), RECORDS, p=weights / weights.sum())
    drawn = []
    for at, is_new, luck in zip(chosen, *random.random((2, RECORDS)), strict=True):
        example = parse(source[at].SerializeToString())
        feature = example.features.feature
        fare = feature["fare"].float_list.value
        hour = feature["trip_start_hour"].int64_list.value[0]
        is_night = hour >= 20 or hour < 6
        score = 1.5 * (1 - 2 * slow) * (math.log1p(fare[0]) - 2.3) / 0.6
        score += (-1.2 if is_sudden else 1.2) * (1.0 if is_night else -0.4)
        score += 0.5 if _by_card(example) else -0.5 if is_sudden else -2.5
        fare[0] *= 1 + 0.4 * slow
        if day >= NEW_COMPANY and is_new < 0.2:
            feature["company"].bytes_list.value[:] = [COMPANY]
            score += 2.5
        label = int(luck < 1 / (1 + math.exp(-score)))
        feature[LABEL].int64_list.value[:] = [label]
        drawn.append(example.SerializeToString(deterministic=True))
    return drawn


def labels(records: Iterable[bytes]) -> list[int]:
    """Returns which trips have a big tip."""
    features = (parse(record).features.feature for record in records)
    return [feature[LABEL].int64_list.value[0] for feature in features]


@lru_cache
def _source() -> list[Any]:
    records = TAXI.read(Path())[ALL]
    trips = [parse(records.make(at)) for at in range(records.count)]
    for trip in trips:
        for name in {*trip.features.feature} - {*FEATURES, LABEL}:
            del trip.features.feature[name]
    return trips


def write_schema(path: Path) -> None:
    """Writes taxi's schema with the features of the trips here."""
    schema = schema_pb2.Schema()
    text = (own_root() / "schemas" / "taxi" / "schema.pbtxt").read_text()
    text_format.Parse(text, schema)
    kept = [x for x in schema.feature if x.name in {*FEATURES, LABEL}]
    del schema.feature[:]
    schema.feature.extend(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_format.MessageToString(schema))


def _by_card(trip: Any) -> bool:
    payment = trip.features.feature["payment_type"].bytes_list.value
    return payment[0] == b"Credit Card"


def _other_units(record: bytes) -> bytes:
    example = parse(record)
    feature = example.features.feature
    payment = feature["payment_type"].bytes_list.value
    payment[0] = payment[0].lower()
    feature["fare"].float_list.value[0] *= 100
    return example.SerializeToString(deterministic=True)
