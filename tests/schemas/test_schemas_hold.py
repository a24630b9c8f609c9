"""The reviewed schemas fit the sample data."""

from __future__ import annotations

from pathlib import Path

import pytest

import schemas
from sample_data import catalog
from schemas import loader
from schemas.data_statistics import compute_statistics
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("name", ["digits", "taxi", "diabetes"])
def test_no_split_has_an_anomaly(tmp_path, name):
    import tensorflow_data_validation as tfdv

    catalog.make(name, tmp_path / name)
    schema = loader.load(Path(schemas.__file__).parent / name / "schema.pbtxt")
    for split in ("train", "eval", "test"):
        shards = sorted((tmp_path / name).glob(f"{split}-*"))
        statistics = compute_statistics(
            x for path in shards for x in tfrecord.read(path)
        )
        assert statistics.datasets[0].num_examples
        found = tfdv.validate_statistics(statistics, schema)
        assert not found.anomaly_info and not found.HasField("dataset_anomaly_info")
