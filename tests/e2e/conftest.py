"""A small project whose data the tests damage, and the ways to run it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from sample_data.tf_example import encode
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse
from sluice.workspace import Workspace, locate
from tests.kit.project import write_project

GUARDED = (
    *("AcceptData", "Transform", "Trainer", "Evaluator", "ModelVerdict"),
    *("ServingCheck", "Pusher"),
)

_CONFIG = """
version: 1
name: trips
data:
  dir: data
  splits: {train: "train*", eval: "eval*"}
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


@dataclass
class Trips:
    """A project with good data, and the ways to run it.

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
        write_project(self.root, "trips", _CONFIG, self.schema)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def workspace(self) -> Workspace:
        return locate(self.root, "trips")

    @staticmethod
    @lru_cache
    def image(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> bytes:
        """An encoded grey image that is no single colour."""
        from PIL import Image

        stream = io.BytesIO()
        Image.radial_gradient("L").resize(size).save(stream, kind)
        return stream.getvalue()

    @classmethod
    def example(cls, number: int, **other: Any) -> bytes:
        """A record as the schema has it; ``other`` replaces features, None drops."""
        features = {
            "image": [cls.image()],
            "label": [number % 2],
            "fare": [1.0 + number % 10],
            "payment": [b"cash" if number % 2 else b"card"],
            "user": [f"user-{number:05}".encode()],
            **other,
        }
        return encode({name: value for name, value in features.items() if value})

    @classmethod
    def examples(cls, count: int = 20, start: int = 0, **other: Any) -> list[bytes]:
        """Records as the schema has them, no two of the same number alike."""
        return [cls.example(start + n, **other) for n in range(count)]

    def write_schema(self, extra: str = "") -> None:
        """Writes the schema, with more features."""
        path = self.root / "schemas" / "trips" / "schema.pbtxt"
        path.write_text(self.schema + extra)

    def fill(self, place: str = "", start: int = 0, **records: list[bytes]) -> None:
        """Writes one shard for each split below ``data/place``.

        Args:
          place: a folder such as ``span-1``.
          start: number of the first record.
          **records: of a split, instead of 20 good ones.
        """
        for index, split in enumerate(("train", "eval")):
            good = self.examples(start=start + 100 * index)
            self.write(f"{place}/{split}-0", records.get(split, good))

    def write(self, name: str, content: bytes | list[bytes]) -> Path:
        """Writes a file below ``data``: its bytes, or its records."""
        path = self.data / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            tfrecord.write(path, content)
        return path

    def run(self, *overrides: str, **options: Any) -> RunRecord:
        """Runs the whole pipeline: data that passes the gate is trained on.

        Args:
          *overrides: of the config, after ``settings``.
          **options: of ``Plan``.
        """
        settings = [*self.settings, *overrides]
        config = load_config("trips", cwd=self.root, overrides=settings)
        return self.run_config(config, self.workspace, **options)

    def run_to_gate(self, *overrides: str, **options: Any) -> RunRecord:
        """Runs the nodes up to the data gate, for data that passes it."""
        return self.run(*overrides, to_nodes=("DataGate",), **options)

    def stopped(self, record: RunRecord) -> dict[tuple, Any]:
        """Returns the failed rows of a blocked run, by split, feature and kind.

        Asserts that the data gate blocked it, that no node after the gate ran, and that
        no traceback is printed.
        """
        assert (record.status, record.exit_code) == ("blocked", 3), record.error
        assert record.error and record.error.node == "DataGate"
        assert len(record.error.message.splitlines()) <= 9
        assert {record.node(name).state for name in GUARDED} == {"blocked"}
        assert record.pushes[0].state == "blocked"
        assert not list(self.workspace.artifacts.glob("Tra*/*"))
        (gate,) = record.gates
        assert gate.gate == "data" and not gate.passed
        assert "Traceback" not in self.shown(record)
        return {
            (row.slice, row.feature, row.kind): row
            for row in gate.rows
            if not row.passed
        }

    def shown(self, record: RunRecord) -> str:
        """Returns what the command line prints at the end of a run."""
        from runners.cli.rich_console import PlainConsole
        from runners.cli.run_view import print_outcome

        stream = io.StringIO()
        print_outcome(PlainConsole(file=stream, width=400), record)
        return stream.getvalue()

    def quarantine(self, record: RunRecord) -> list[dict[str, Any]]:
        """Returns the quarantined records: the features of each."""
        (uri,) = record.node("TFRecordGen").outputs["quarantine"]
        return [
            {
                name: getattr(feature, feature.WhichOneof("kind")).value[0]
                for name, feature in parse(data).features.feature.items()
            }
            for data in tfrecord.read(Path(uri) / "quarantine.tfrecord.gz")
        ]

    def ingestion(self, record: RunRecord) -> dict[str, Any]:
        """Returns the ingestion document of a run."""
        (document, *_) = [x for x in record.documents if x.kind == "ingestion"]
        path = self.workspace.run_dir(record.run_id) / document.path
        return json.loads(path.read_text())


@pytest.fixture
def empty_trips(tmp_path: Path, run_config: Callable[..., RunRecord]) -> Trips:
    """A project without data."""
    return Trips(tmp_path / "trips", run_config)


@pytest.fixture
def trips(empty_trips: Trips) -> Trips:
    """A project with 20 good records in each of two splits."""
    empty_trips.fill()
    return empty_trips
