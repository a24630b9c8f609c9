"""Requests that a server has logged are ingested as their examples."""

from __future__ import annotations

import pytest

from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from tests.kit.ingestion import Room, examples, shard

pytestmark = pytest.mark.tf


def _log(kind: str, *data: bytes) -> bytes:
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = getattr(log, f"{kind}_log").request
    if kind == "predict":
        tensor = tf.make_tensor_proto([*data], tf.string)
        request.inputs["examples"].CopyFrom(tensor)
        log.predict_log.response.outputs["label"].CopyFrom(tensor)
    else:
        for item in data:
            request.input.example_list.examples.add().ParseFromString(item)
    return log.SerializeToString()


@pytest.mark.parametrize("compression", ["none", "gzip", "members"])
@pytest.mark.parametrize("kind", ["predict", "classify", "regress"])
def test_each_example_of_a_request_is_a_record(tmp_path, kind, compression):
    room, records = Room(tmp_path), examples(100)
    logs = [_log(kind, *records[n : n + 7]) for n in range(0, 100, 7)]
    path = room.put("logs", shard(logs, compression))

    report = room.ingest(path, splits=("serving",), are_logs=True)

    assert (report.records, report.quarantined) == (100, 0)
    [written] = (tmp_path / "out" / "Split-serving").glob("*.gz")
    assert [*tfrecord.read(written)] == records


def test_what_has_no_examples_is_quarantined(tmp_path):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    values = prediction_log_pb2.PredictionLog()
    for name in ("fare", "tip"):
        tensor = tf.make_tensor_proto([1.0])
        values.predict_log.request.inputs[name].CopyFrom(tensor)
    good = encode({"id": [1]})
    bad = [b"no proto", b"", good, values.SerializeToString(), _log("predict")]
    room = Room(tmp_path)
    path = room.put("logs", shard([_log("predict", good), *bad, _log("predict", b"x")]))

    report = room.ingest(path, splits=("serving",), are_logs=True)

    assert (report.records, report.quarantined) == (1, 6)
    assert report.errors == {"not_example": 6}
