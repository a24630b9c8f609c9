"""Writes a whole schema as text in the layout of reviewed ones, without comments."""

from __future__ import annotations

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.feature_block import feature_block


def plain_text(schema: schema_pb2.Schema) -> str:
    """Returns the text, which parses to the same schema."""
    rest = schema_pb2.Schema()
    rest.CopyFrom(schema)
    del rest.feature[:]
    blocks = ["\n".join(feature_block(feature)) for feature in schema.feature]
    if rest.ListFields():
        blocks.insert(0, text_format.MessageToString(rest, as_utf8=True).rstrip())
    return "\n\n".join(blocks) + "\n"
