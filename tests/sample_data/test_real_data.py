"""The records of the real data sets are those that were compared with their sources."""

import hashlib
from pathlib import Path

import pytest

from sample_data import catalog
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

# Records per shard, and the digest of the digests of their records, which were compared
# with the sources as scikit-learn and TFX have them. Where one changes,
# raise the data set's version.
EXPECTED = {
    "digits": (
        [300] * 4 + [149, 148, 150, 150],
        "d4177105c4df48e65d7c7906cc3a0d55e5b6379ef3f6bf891eb05aeef75f0457",
    ),
    "taxi": (
        [2626, 2626, 2625, 2625] + [1125] * 4,
        "db851cc7d21738b8f5abcb628c3168ffa4e5e2ceb1b0b2c28290f8dbc3979e20",
    ),
    "diabetes": (
        [155, 155, 66, 66],
        "8619560edddd555ac8cb72342ff9d43e39a7c0de0f448cfd3c5c25f360406c00",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    return {name: (root / name, catalog.make(name, root / name)) for name in EXPECTED}


def records_digest(path):
    """Digest of the records, each after its length; independent of compression."""
    digest = hashlib.sha256()
    for record in tfrecord.read(path):
        digest.update(len(record).to_bytes(8, "little") + record)
    return digest.hexdigest()


@pytest.mark.parametrize("name", EXPECTED)
def test_the_records_are_the_expected_ones(made, name, tmp_path):
    directory, manifest = made[name]
    counts, digest = EXPECTED[name]
    assert [shard.records for shard in manifest.shards] == counts
    digests = [records_digest(directory / shard.name) for shard in manifest.shards]
    assert hashlib.sha256("".join(digests).encode()).hexdigest() == digest
    # A second make gives the same bytes.
    assert catalog.make(name, tmp_path / name) == manifest
    for path in directory.iterdir():
        assert (tmp_path / name / path.name).read_bytes() == path.read_bytes()


FASHION = Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.acceptance
@pytest.mark.real_data
@pytest.mark.skipif(
    not FASHION.is_dir(), reason="apt-get install dataset-fashion-mnist"
)
def test_fashion_mnist_is_made_of_the_published_files(tmp_path):
    made = catalog.make("fashion-mnist", tmp_path / "made", source=FASHION)
    counts = {"train": 55_000, "eval": 5_000, "test": 10_000}
    assert {split: made.records(split) for split in counts} == counts
    assert made.class_names[9] == "Ankle boot"
    assert records_digest(tmp_path / "made" / made.shards[0].name) == (
        "47120371af5fdf0f02d22fbde43dc5cdf40d376d2c3e63788f10a1274ba7f7a1"
    )
