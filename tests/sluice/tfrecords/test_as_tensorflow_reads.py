"""Differential test: records are accepted where all their readers agree on them.

The readers are ``tf.io.parse_example`` (the exported model), tfx_bsl's decoder
(StatisticsGen, Transform, Evaluator) and protobuf. Valid and invalid records are
generated in the wire format, field by field.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.tf

_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)
_KINDS = {"bytes_list": "string", "float_list": "float32", "int64_list": "int64"}


def varint(value: int) -> bytes:
    """Returns Protobuf's encoding of a number that is not negative."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


class Wire:
    """Writes records that are seldom what a writer of tf.Examples would write.

    Attributes:
      is_odd: whether something is in it that no writer of tf.Examples writes, and that
        readers read differently: an unknown field, an entry without one name and one
        value, a tag longer than need be, a list in several parts.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.is_odd = False

    def example(self) -> bytes:
        return self._message(self._features() for _ in self._up_to(2))

    def _features(self) -> bytes:
        entries = (self._field(1, self._entry()) for _ in self._up_to(3))
        return self._field(1, self._message(entries))

    def _entry(self) -> bytes:
        numbers = [1, 2]
        if self._seldom():
            numbers = [self._random.randint(1, 2) for _ in self._up_to(3)]
            self.is_odd |= sorted(numbers) != [1, 2]
        parts = (self._name() if number == 1 else self._feature() for number in numbers)
        return self._message(map(self._field, numbers, parts))

    def _name(self) -> bytes:
        # Not the byte 0, at which Arrow cuts the name of a column.
        names = [b"a", b"b", b"", "\N{SNOWMAN}".encode()]
        return self._random.choice(
            [b"\xff", b"\xed\xa0\x80"] if self._seldom() else names
        )

    def _feature(self) -> bytes:
        count = 2 if self._seldom() else self._random.randint(0, 1)
        self.is_odd |= count > 1
        kinds = [self._random.randint(1, 3) for _ in range(count)]
        return self._message(self._field(kind, self._list(kind)) for kind in kinds)

    def _list(self, kind: int) -> bytes:
        if kind == 1:
            return self._message(self._field(1, self._text()) for _ in self._up_to(3))
        write, wire_type = (
            (self._float, _FIXED32) if kind == 2 else (self._int, _VARINT)
        )
        if self._random.randint(0, 1):
            packed = b"".join(write() for _ in self._up_to(3))
            parts = [self._field(1, packed)]
        else:
            parts = [self._field(1, write(), wire_type) for _ in self._up_to(3)]
        if self._seldom():
            self.is_odd = True
            parts.append(self._field(1, write()))
        return self._message(parts)

    def _text(self) -> bytes:
        return bytes(self._random.randrange(256) for _ in self._up_to(3))

    def _float(self) -> bytes:
        return bytes(self._random.randrange(256) for _ in range(4))

    def _int(self) -> bytes:
        value = self._random.choice(
            [self._random.randrange(200), self._random.randrange(2**64)]
        )
        return self._varint(value, most_spare=9)

    def _message(self, fields: Iterable[bytes]) -> bytes:
        parts = list(fields)
        if self._seldom():
            self.is_odd = True
            parts.insert(self._random.randint(0, len(parts)), self._unknown())
        return b"".join(parts)

    def _unknown(self) -> bytes:
        number = self._random.randint(4, 20) << 3
        wire_type = self._random.randrange(6)
        content = {_VARINT: bytes(1), _FIXED64: bytes(8), _FIXED32: bytes(4)}
        ends = {_GROUP: varint(number | _END_GROUP), _BYTES: b"\x02xy"}
        return varint(number | wire_type) + {**content, **ends}.get(wire_type, b"")

    def _field(self, number: int, content: bytes, wire_type: int = _BYTES) -> bytes:
        tag = self._varint(number << 3 | wire_type, most_spare=4)
        self.is_odd |= len(tag) > 1
        if wire_type != _BYTES:
            return tag + content
        return tag + self._varint(len(content), most_spare=4) + content

    def _varint(self, value: int, most_spare: int) -> bytes:
        """Returns a number, seldom in more bytes than need be."""
        encoded = varint(value)
        if not self._seldom():
            return encoded
        longer = encoded[:-1] + bytes([encoded[-1] | 0x80])
        return longer + b"\x80" * self._random.randrange(most_spare) + b"\x00"

    def _seldom(self) -> bool:
        return self._random.randrange(40) == 0

    def _up_to(self, most: int) -> range:
        return range(self._random.randint(0, most))


@pytest.fixture(scope="module")
def read():
    """A function that says what each reader makes of a record."""
    import tensorflow as tf
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    decoder = ExamplesToRecordBatchDecoder()

    def by_protobuf(data: bytes) -> dict[str, Any]:
        features = tf.train.Example.FromString(data).features.feature
        kinds = {name: item.WhichOneof("kind") for name, item in features.items()}
        return {
            name: (kind, list(getattr(features[name], kind).value) if kind else [])
            for name, kind in kinds.items()
        }

    def by_tfx_bsl(data: bytes) -> dict[str, Any]:
        columns = decoder.DecodeBatch([data]).to_pydict()
        return {name: values[0] or [] for name, values in columns.items()}

    def by_tensorflow(data: bytes, names: dict[str, Any]) -> dict[str, Any]:
        spec = {
            name: tf.io.VarLenFeature(_KINDS[kind or "int64_list"])
            for name, (kind, _) in names.items()
        } or {"a": tf.io.VarLenFeature("int64")}
        found = tf.io.parse_example([data], spec)
        return {name: found[name].values.numpy().tolist() for name in names}

    def read_all(data: bytes) -> dict[str, list[Any]] | None:
        """What they agree on, None where one fails or reads something else."""
        try:
            first = by_protobuf(data)
            second = by_tfx_bsl(data)
            third = by_tensorflow(data, first)
        except Exception:  # Each has its own.
            return None
        wanted = {name: comparable(values) for name, (_, values) in first.items()}
        for other in (second, third):
            if {name: comparable(other[name]) for name in other} != wanted:
                return None
        return wanted

    return read_all


def comparable(values: Sequence[Any]) -> list[Any]:
    return [
        "nan" if isinstance(value, float) and math.isnan(value) else value
        for value in values
    ]


def ours(data: bytes) -> dict[str, list[Any]] | None:
    try:
        features = parse(data).features.feature
    except ValueError:
        return None
    kinds = {name: item.WhichOneof("kind") for name, item in features.items()}
    return {
        name: comparable(getattr(features[name], kind).value) if kind else []
        for name, kind in kinds.items()
    }


@settings(max_examples=600, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_generated_record_is_taken_where_readers_agree_on_it(read, random):
    wire = Wire(random)
    data = wire.example()

    found = ours(data)

    event("taken" if found is not None else "refused")
    if not wire.is_odd:
        assert found == read(data)
