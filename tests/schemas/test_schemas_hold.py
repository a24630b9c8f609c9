"""The reviewed schemas validate the sample data and reject bad records."""

from __future__ import annotations

from pathlib import Path

import pytest

import schemas
from sample_data import catalog
from schemas import loader

pytestmark = pytest.mark.tf

NAMES = ["digits", "taxi", "diabetes"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for name in NAMES:
        catalog.make(name, root / name)
    return root


def load(name):
    return loader.load(Path(schemas.__file__).parent / name / "schema.pbtxt")


def anomalies(schema, pattern, environment=None):
    """Per feature what TFDV finds wrong, for every file that a pattern takes."""
    import tensorflow_data_validation as tfdv

    statistics = tfdv.generate_statistics_from_tfrecord(str(pattern))
    assert statistics.datasets[0].num_examples
    found = tfdv.validate_statistics(statistics, schema, environment=environment)
    assert not found.HasField("dataset_anomaly_info")
    return {
        feature: {reason.short_description for reason in info.reason}
        for feature, info in found.anomaly_info.items()
    }


@pytest.mark.parametrize("split", ["train", "eval", "test"])
@pytest.mark.parametrize("name", NAMES)
def test_no_split_has_an_anomaly(data, name, split):
    assert anomalies(load(name), data / name / f"{split}-*") == {}
