"""Writes schemas as protobuf text, and accepts into one what data shows.

TFDV's ``update_schema`` proposes the new feature; only the fields that a kind of
anomaly is about are taken from it. In the text only the block of the feature or of its
domain is replaced. It is returned only if it parses to the edited schema.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.data_statistics import (
    Statistics,
    common_stats,
    features_of,
    import_tfdv,
)
from schemas.loader import string_domain
from sluice.errors import ConfigError

# Kinds of anomalies (``components.data_verdict.settings``) and the fields of a feature
# that accepting it may change.
_FIELDS: dict[str, tuple[str, ...]] = {
    "missing": ("presence", "shape", "value_count", "lifecycle_stage"),
    "wrong_shape": ("shape", "value_count"),
    "out_of_range": ("int_domain", "float_domain"),
    "new_value": (),  # Its domain may be shared.
}
ACCEPTABLE = (*_FIELDS, "new_feature")

_ANY_SIZE = 1_000_000


def accept_change(
    schema: schema_pb2.Schema,
    kind: str,
    name: str,
    statistics: Iterable[Statistics],
) -> schema_pb2.Schema:
    """Returns the schema with one feature changed so that the data fits.

    Args:
      schema: the reviewed one.
      kind: one of ``ACCEPTABLE``.
      name: of the feature.
      statistics: of each split.
    """
    edited, part = copy.deepcopy(schema), schema_pb2.Schema()
    feature = next((one for one in edited.feature if one.name == name), None)
    if feature is None:
        for of_split in statistics:
            part = _updated(part, of_split, name, max_string_domain_size=100)
        edited.MergeFrom(part)
        return edited
    part.feature.append(feature)
    part.string_domain.extend(schema.string_domain)
    fewest, most = 1, 1
    for of_split in statistics:
        part = _updated(part, of_split, name, max_string_domain_size=_ANY_SIZE)
        if known := features_of(of_split).get(name):
            common = common_stats(known)
            fewest = min(fewest, common.min_num_values or fewest)
            most = max(most, common.max_num_values)
    new = part.feature[0]
    if feature.HasField("shape") and new.WhichOneof("shape_type") is None:
        # TensorFlow rejects records without a feature that has a shape.
        new.value_count.min, new.value_count.max = fewest, most
    old_domain, domain = string_domain(feature, edited), string_domain(new, part)
    if kind == "new_value" and old_domain and domain:
        old_domain.CopyFrom(domain)
    for descriptor, _ in new.ListFields():
        if descriptor.name not in _FIELDS[kind]:
            new.ClearField(descriptor.name)
    for field in _FIELDS[kind]:
        feature.ClearField(field)
    feature.MergeFrom(new)
    return edited


def _updated(
    schema: schema_pb2.Schema,
    statistics: Statistics,
    name: str,
    max_string_domain_size: int,
) -> schema_pb2.Schema:
    """Returns TFDV's update of a schema with one feature."""
    one = copy.deepcopy(statistics)
    for dataset in one.datasets:
        kept = [item for item in dataset.features if list(item.path.step) == [name]]
        del dataset.features[:]
        dataset.features.extend(kept)
    return import_tfdv().update_schema(
        schema, one, max_string_domain_size=max_string_domain_size
    )


def edit_text(
    text: str, before: schema_pb2.Schema, after: schema_pb2.Schema, where: object
) -> str:
    """Returns a schema's text with the features and domains of an edited schema.

    Comments within a replaced block are lost, all others are kept. New features are
    appended. The text must have blocks as TFDV and ``schema_text`` write them: from a
    line ``feature {`` to a line ``}``.

    Args:
      text: of ``before``.
      before: the schema.
      after: the edited one.
      where: the file, for the error.

    Raises:
      ConfigError: the edited text would not parse to the edited schema.
    """
    edited, problem = text, "the edited text does not parse to the edited schema"
    try:
        for field in ("feature", "string_domain"):
            old = {entry.name: entry for entry in getattr(before, field)}
            for entry in getattr(after, field):
                new = block(field, entry)
                if entry.name not in old:
                    edited = f"{edited.rstrip()}\n\n{new}\n"
                elif entry != old[entry.name]:
                    start, end = _find_block(edited, field, entry.name)
                    edited = edited[:start] + new + edited[end:]
        if text_format.Parse(edited, schema_pb2.Schema()) == after:
            return edited
    except (LookupError, text_format.ParseError) as error:
        problem = str(error)
    raise ConfigError(
        f"this schema's text cannot be edited safely; nothing was written: {problem}",
        where=where,
        hint="edit the file by hand",
    )


def _find_block(text: str, field: str, name: str) -> tuple[int, int]:
    """Returns the position of the feature or string domain of a name."""
    for block in re.finditer(rf"^{field} \{{.*?^\}}", text, re.MULTILINE | re.DOTALL):
        part = text_format.Parse(block[0], schema_pb2.Schema())
        if [item.name for item in getattr(part, field)] == [name]:
            return block.span()
    raise LookupError(f"no {field} {name!r} from a line '{field} {{' to a line '}}'")


def schema_text(schema: schema_pb2.Schema) -> str:
    """Returns a schema as text: a block per feature, its domain below it."""
    rest = copy.deepcopy(schema)
    del rest.feature[:], rest.string_domain[:]
    domains = {domain.name: domain for domain in schema.string_domain}
    blocks = [_printable(rest).strip()] if rest.ListFields() else []
    for feature in schema.feature:
        blocks.append(block("feature", feature))
        if domain := domains.pop(feature.domain, None):
            blocks.append(block("string_domain", domain))
    blocks += [block("string_domain", domain) for domain in domains.values()]
    return "\n\n".join(blocks) + "\n"


def block(name: str, message: Message) -> str:
    """Returns ``name { ... }``."""
    return f"{name} {{\n{_printable(message, indent=2)}}}"


def _printable(message: Message, indent: int = 0) -> str:
    """Returns a message as text, escaped if a character cannot be printed."""
    text, escaped = (
        text_format.MessageToString(message, indent=indent, as_utf8=as_utf8)
        for as_utf8 in (True, False)
    )
    return text if text.replace("\n", "").isprintable() else escaped
