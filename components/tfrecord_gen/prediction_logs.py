"""Reads the examples of requests that a model server has logged.

The records are TensorFlow Serving's ``PredictionLog``, as `sluice serve --record`,
TFX's BulkInferrer and TensorFlow Serving's request logging write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf import message

from sluice.tfrecords.frame_reader import Batch, RecordError

_KIND = "not_example"


def unwrap(
    path: str, items: Iterable[Batch | RecordError]
) -> Iterator[Batch | RecordError]:
    """Yields a batch of the examples in each batch of logs, and all errors.

    Args:
      path: of the file.
      items: their records are serialized ``PredictionLog``.
    """
    for item in items:
        if isinstance(item, RecordError):
            yield item
            continue
        examples: list[bytes] = []
        for number, offset, data in item:
            try:
                examples += examples_of(data)
            except ValueError as error:
                yield RecordError(path, number, offset, _KIND, str(error), data)
        if examples:
            yield Batch.of(item.number, item.offset, examples)


def examples_of(data: bytes) -> list[bytes]:
    """Returns the serialized tf.Examples of a ``PredictionLog``.

    Raises:
      ValueError: it is none, or the request has no tf.Examples.
    """
    # Its protos are TensorFlow's.
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    try:
        log.ParseFromString(data)
    except message.DecodeError as error:
        raise ValueError("not a PredictionLog: the bytes do not parse") from error
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        tensors = [*log.predict_log.request.inputs.values()]
        if len(tensors) == 1 and tensors[0].string_val:
            return [*tensors[0].string_val]
    elif kind in ("classify_log", "regress_log", "multi_inference_log"):
        request = getattr(log, kind).request
        examples = request.input.example_list.examples
        if examples:
            return [x.SerializeToString(deterministic=True) for x in examples]
    raise ValueError("a PredictionLog without serialized tf.Examples in its request")
