"""Writes a whole schema as text in the layout of reviewed ones, without comments."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.feature_block import feature_block
from schemas.edit.one_line import message_text


def plain_text(schema: schema_pb2.Schema) -> str:
    """Returns the text, which parses to the same schema."""
    rest = schema_pb2.Schema()
    rest.CopyFrom(schema)
    del rest.feature[:]
    blocks = ["\n".join(feature_block(feature)) for feature in schema.feature]
    if rest.ListFields():
        blocks.insert(0, message_text(rest))
    return "\n\n".join(blocks) + "\n"
