"""Formats a proposed schema as text, with observed counts as comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf import text_encoding, text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.config_text import one_line
from pipeline.scaffold.propose import Proposal
from pipeline.scaffold.semantic_type import share
from pipeline.scaffold.summarize import FeatureSummary
from schemas.features import string_domain

_HEAD = """\
# {name}: schema of the records.
# proto-file: tensorflow_metadata/proto/v0/schema.proto
# proto-message: tensorflow.metadata.v0.Schema
#
# Proposed by 'sluice init' from {sampled}.
# Review it: the data gate rejects data that does not conform to it.
#
# A required feature has a shape. An optional one has none (TensorFlow rejects records
# without a feature that has a shape); its min_fraction is a little below the observed
# one. To limit the drift of a feature, add
# drift_comparator {{ jensen_shannon_divergence {{ threshold: 0.1 }} }} to it.

"""


def schema_text(proposal: Proposal) -> str:
    """Returns the proposed schema as text, with comments."""
    schema, summary = proposal.schema, proposal.summary
    comments = {choice.name: [choice.why] for choice in proposal.features}
    for choice in proposal.features:
        if choice.spec is None:
            comments[choice.name] = [f"Not used: {choice.why}"]
    label = proposal.label
    reasons = f": {', '.join(label.reasons)}" if label.reasons else ""
    comments[label.name] = [f"The label, with {label.classes:,} classes{reasons}"]
    blocks = []
    for feature in schema.feature:
        seen = summary.features[feature.name]
        lines = [f"# {one_line(text)}." for text in _comment(comments, seen)]
        blocks.append("\n".join([*lines, *_message("feature", _fields(feature))]))
        if feature.HasField("domain") and (domain := string_domain(feature, schema)):
            fields = [("name", domain.name)]
            fields += [("value", value) for value in domain.value]
            blocks.append("\n".join(_message("string_domain", map(_string, fields))))
    head = _HEAD.format(name=proposal.name, sampled=proposal.sampled)
    head += "".join(
        f'default_environment: "{name}"\n' for name in schema.default_environment
    )
    return head + "\n" + "\n\n".join(blocks) + "\n"


def _comment(comments: dict[str, list[str]], feature: FeatureSummary) -> Iterator[str]:
    for text in comments[feature.name]:
        yield text[:1].upper() + text[1:]
    if not feature.always and share(feature) not in comments[feature.name][0]:
        yield f"In {share(feature)}"


def _message(name: str, lines: Iterable[str]) -> list[str]:
    return [f"{name} {{", *(f"  {line}" for line in lines), "}"]


def _string(field: tuple[str, str]) -> str:
    name, value = field
    return f'{name}: "{text_encoding.CEscape(value, as_utf8=True)}"'


def _fields(feature: schema_pb2.Feature) -> Iterator[str]:
    """Yields a feature's fields, in the order of the example schemas."""
    yield _string(("name", feature.name))
    yield f"type: {schema_pb2.FeatureType.Name(feature.type)}"
    for field in ("presence", "shape", "value_count"):
        if feature.HasField(field):
            yield _nested(field, getattr(feature, field))
    if feature.HasField("domain"):
        yield _string(("domain", feature.domain))
    for field in ("int_domain", "float_domain", "image_domain"):
        if feature.HasField(field):
            yield _nested(field, getattr(feature, field))
    for name in feature.not_in_environment:
        yield _string(("not_in_environment", name))


def _nested(name: str, message: object) -> str:
    inside = text_format.MessageToString(message, as_one_line=True).strip()
    return f"{name} {{ {inside} }}" if inside else f"{name} {{}}"
