"""A small project whose data the tests damage, and what runs it to the data gate."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.load_config import load_config
from sample_data.tf_example import encode
from sluice import tfrecord
from sluice.run_record import RunRecord
from sluice.workspace import Workspace, locate

SPLITS = ("train", "eval", "test")
GATE_NODES = frozenset(
    {
        "TFRecordGen",
        "StatisticsGen",
        "ImportSchemaGen",
        "ExampleValidator",
        "DataVerdict",
        "DataGate",
    }
)

_CONFIG = """
version: 1
name: trips
data:
  dir: data
  splits: {train: "train-*", eval: "eval-*", test: "test-*"}
examples:
  images: {max_side: 32, max_pixels: 1024}
label: {feature: label}
features:
  image: {kind: image, height: 8, width: 8, channels: 1}
  fare: {kind: numeric}
  payment: {kind: vocabulary}
model: dense
evaluate: {metrics: [ExampleCount]}
"""

_SCHEMA = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature {
  name: "image" type: BYTES
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  image_domain {}
}
feature {
  name: "label" type: INT
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  int_domain { min: 0 max: 1 is_categorical: true }
  not_in_environment: "SERVING"
}
feature {
  name: "fare" type: FLOAT
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  float_domain { min: 0 }
}
feature {
  name: "payment" type: BYTES
  presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
  domain: "payment"
  drift_comparator { infinity_norm { threshold: 0.2 } }
  skew_comparator { infinity_norm { threshold: 0.2 } }
}
feature {
  name: "user" type: BYTES
  presence { min_fraction: 0.0 } value_count { min: 1 max: 1 }
}
string_domain { name: "payment" value: "cash" value: "card" }
"""


@lru_cache
def image(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> bytes:
    """An encoded grey image, as the reader of a record finds it."""
    from PIL import Image

    stream = io.BytesIO()
    Image.new("L", size, 7).save(stream, kind)
    return stream.getvalue()


def example(number: int, **other: Any) -> bytes:
    """A record that is as the schema says; ``other`` replaces features, None drops."""
    features = {
        "image": [image()],
        "label": [number % 2],
        "fare": [1.0 + number % 10],
        "payment": [b"cash" if number % 2 else b"card"],
        "user": [f"user-{number // 3}".encode()],
        **other,
    }
    return encode({name: value for name, value in features.items() if value})


def examples(count: int = 20, start: int = 0, **other: Any) -> list[bytes]:
    """Records that are as the schema says, all different by user and fare."""
    return [example(start + n, **other) for n in range(count)]


@dataclass
class Trips:
    """A project with good data, and what runs it.

    Attributes:
      root: of the project.
      run_config: the fixture of that name.
      schema: as text.
      settings: overrides of the config, for all runs.
    """

    root: Path
    run_config: Callable[..., RunRecord]
    schema: str = _SCHEMA
    settings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "configs").mkdir(parents=True)
        (self.root / "schemas" / "trips").mkdir(parents=True)
        (self.root / "configs" / "trips.yaml").write_text(_CONFIG)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def workspace(self) -> Workspace:
        return locate(self.root, "trips")

    def fill(self, place: str = "", **records: Sequence[bytes]) -> None:
        """Writes one good shard for each split below ``data/place``.

        Args:
          place: a folder such as ``span-1``.
          **records: of a split, instead of good ones.
        """
        for index, split in enumerate(SPLITS):
            good = examples(start=100 * index)
            self.write(f"{place}/{split}-0", records.get(split, good))

    def write(self, name: str, records: Sequence[bytes]) -> Path:
        path = self.data / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        tfrecord.write(path, records)
        return path

    def run(
        self,
        *overrides: str,
        to_nodes: tuple[str, ...] = ("DataGate",),
        **options: Any,
    ) -> RunRecord:
        """Runs the pipeline, to the data gate if nothing else is said."""
        (self.root / "schemas" / "trips" / "schema.pbtxt").write_text(self.schema)
        config = load_config(
            "trips", cwd=self.root, overrides=[*self.settings, *overrides]
        )
        return self.run_config(config, self.workspace, to_nodes=to_nodes, **options)
