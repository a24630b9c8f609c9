"""Equal records among all that are ingested, and the files that records are from."""

from __future__ import annotations

import gzip
import io

import pytest
from PIL import Image

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.input_files import SourceFile
from components.tfrecord_gen.settings import HashSplits, ImageCheck
from runners.documents.examples import read_examples
from sample_data.tf_example import encode
from tests.kit.ingestion import examples, framed, shard

pytestmark = pytest.mark.unit

SPLITS = ("train", "eval", "test")


def _equal(report):
    return {(x.split, x.other): (x.records, *x.examples) for x in report.equal}


def _ingest(room, contents, **settings):
    """Ingests a file per split."""
    paths = [room.put(split, shard(x)) for split, x in contents.items()]
    pairs = zip(paths, contents, strict=True)
    files = [SourceFile(path, split) for path, split in pairs]
    return room.ingest_files(files, tuple(contents), **settings), paths


def _png(shade):
    file = io.BytesIO()
    Image.new("L", (3, 3), shade).save(file, "PNG")
    return file.getvalue()


def test_a_leak_is_found_among_all_records_in_any_order_of_features(room):
    a, b = encode({"a": [1], "b": [b"x"]}), encode({"a": [2], "b": [b"x"]})
    first, second = encode({"a": [1]}), encode({"b": [b"x"]})
    swapped = second + first  # Messages in a row are merged: b comes before a.
    other_label = encode({"a": [1], "b": [b"y"]})
    train = [*examples(3_000), a, b, a]
    contents = {"train": train, "eval": [b], "test": [other_label, swapped]}
    report, (in_train, in_eval, in_test) = _ingest(room, contents)
    assert swapped != a
    at = ", record {:,}: equal to {}, record {:,}".format
    assert _equal(report) == {
        ("train", "train"): (1, in_train + at(3_003, in_train, 3_001)),
        ("eval", "train"): (1, in_eval + at(1, in_train, 3_002)),
        ("test", "train"): (1, in_test + at(2, in_train, 3_001)),
    }


def test_an_image_is_the_same_whatever_else_is_in_its_record(room):
    contents = {
        "train": [encode({"image": [_png(n)], "id": [n]}) for n in range(9)],
        "test": [encode({"image": [_png(n)], "id": [9]}) for n in range(7, 20)],
    }
    check = ImageCheck(feature="image", decoded_channels=1)
    report, _ = _ingest(room, contents, images=(check,))
    ((records, *places),) = _equal(report).values()
    assert (records, len(places)) == (2, 2)


@pytest.mark.parametrize("hashed", [False, True])
def test_records_name_the_files_of_the_user(room, hashed, monkeypatch):
    # Copied, merged and rewritten ones, in several shards and groups.
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", 2_000)
    known = {}
    for n, count in enumerate((200, 5, 7, 300, 1)):
        records = examples(count, 1_000 * n)
        bad = [b"\xff", *records[: count // 2], b"\xff", *records[count // 2 :]]
        data = framed(records if n == 0 else bad)
        path = room.put(f"{n}", gzip.compress(data) if n in (0, 3) else data)
        shift = 0 if n == 0 else 2
        for i, record in enumerate(records):
            number = i + 1 + (shift and (1 if i < count // 2 else 2))
            known[record] = path, number
    paths = [*dict.fromkeys(path for path, _ in known.values())]
    splits = SPLITS if hashed else ("train",)
    options = {"hash_splits": HashSplits(train=2, eval=1, test=1)} if hashed else {}
    room.ingest(*paths, splits=splits, workers=2, **options)
    found = [*read_examples(room.out, splits)]
    assert len(found) == len(known) == 513
    assert {x.data: (x.file, x.number) for x in found} == known
