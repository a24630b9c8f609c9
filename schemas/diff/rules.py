"""Rules that find differences between data and a schema."""

from __future__ import annotations

from collections.abc import Iterator

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.diff import messages
from schemas.diff.change import Case, Change
from schemas.edit.edit import AddValues, Edit, Put, Replace
from schemas.features import TRAINING, min_fraction, number_bounds

_NUMBER_DOMAINS = ("int_domain", "float_domain", "bool_domain")
# Any other domain is one of BYTES.
_DOMAINS = {
    "INT": ("int_domain", "bool_domain", "time_domain", "time_of_day_domain"),
    "FLOAT": ("float_domain", "bool_domain"),
}


def wrong_type(case: Case) -> Iterator[Change]:
    """A type other than the schema's, in some or all records."""
    seen, feature = case.seen, case.feature
    wanted = schema_pb2.FeatureType.Name(feature.type)
    if wanted == "TYPE_UNKNOWN" or set(seen.types) <= {wanted}:
        return
    text = f"{messages.types(seen)} in the data, {wanted} in the schema"
    new = str(seen.type)
    domain = feature.WhichOneof("domain_info")
    refusal = None
    if len(seen.types) > 1:
        refusal = "a feature has one type, so the data must be corrected"
    elif new == "STRUCT":
        refusal = messages.NO_STRUCTS
    elif domain and not _fits(domain, new):
        refusal = f"its {domain} does not fit {new}; edit the schema by hand"
    if refusal:
        yield case.change("wrong_type", text, refusal=refusal)
        return
    edit = Put(case.owner, ("type",), schema_pb2.FeatureType.Value(new))
    yield case.change("wrong_type", text, edit)


def wrong_shape(case: Case) -> Iterator[Change]:
    """More or fewer values in a record than the shape or value count allows."""
    seen, feature = case.seen, case.feature
    low, high = seen.min_values, seen.max_values
    if not seen.present:
        return
    edits: list[Edit] = []
    if feature.HasField("shape") and case.size is not None:
        wanted = f"{case.size:,}"
        if not low == high == case.size:
            fixed = seen.always and low == high
            new, message = "value_count", schema_pb2.Feature()
            if fixed:
                new = "shape"
                message.shape.dim.add(size=high)
            else:
                message.value_count.min, message.value_count.max = low, high
            edits.append(Replace(case.owner, "shape", new, message))
    elif feature.HasField("value_count"):
        count = feature.value_count
        wanted = f"{count.min:,}"
        if count.min != count.max:
            wanted = messages.bounds(count.min, count.max or None)
        if low < count.min:
            edits.append(Put(case.owner, ("value_count", "min"), low))
        if 0 < count.max < high:
            edits.append(Put(case.owner, ("value_count", "max"), high))
    if edits:
        found = f"{low:,}" if low == high else f"{low:,} .. {high:,}"
        text = f"{found} values per record, the schema requires {wanted}"
        yield case.change("wrong_shape", text, *edits)


def missing(case: Case) -> Iterator[Change]:
    """Fewer records with the feature than required, in the worst split."""
    presence, seen = case.feature.presence, case.seen
    parts = seen.presence
    if not parts or not _is_expected(case.feature):
        return
    edits: list[Edit] = []
    worst = min(parts, key=lambda item: item.fraction)
    if worst.fraction < presence.min_fraction:
        fraction = min_fraction(worst.present, worst.records)
        edits.append(Put(case.owner, ("presence", "min_fraction"), fraction))
    fewest = min(item.present for item in parts)
    if fewest < presence.min_count:
        edits.append(Put(case.owner, ("presence", "min_count"), fewest))
    if not edits:
        return
    if case.feature.HasField("shape") and not seen.always:
        # TensorFlow rejects records without a feature that has a shape.
        message = schema_pb2.Feature()
        message.value_count.min = message.value_count.max = case.size or 1
        edits.append(Replace(case.owner, "shape", "value_count", message))
    refusal = f"it may not be missing: {case.required}" if case.required else None
    text = messages.missing(seen, worst, presence)
    yield case.change("missing", text, *edits, refusal=refusal)


def _is_expected(feature: schema_pb2.Feature) -> bool:
    """Whether training data must have the feature, by TFDV's rules."""
    if TRAINING in feature.in_environment:
        return True
    return TRAINING not in feature.not_in_environment


def _fits(domain: str, kind: str) -> bool:
    if kind == "BYTES":
        return domain not in _NUMBER_DOMAINS
    return domain in _DOMAINS[kind]


_SENSITIVE = "the feature is sensitive: its values are not written to a schema"
_NO_INFINITIES = "a schema cannot allow it; a rule in validate.rules of the config can"


def new_value(case: Case) -> Iterator[Change]:
    """Strings that are not in the domain."""
    if case.domain is None:
        return
    known = set(case.domain.value)
    new = {value: n for value, n in case.seen.counts.items() if value not in known}
    # TFDV's default is that all values must be in the domain.
    least = case.feature.distribution_constraints.min_domain_mass
    outside = sum(new.values())
    if not new or case.seen.values - outside >= least * case.seen.values:
        return
    if case.sensitive:
        text = messages.count_of_new_values(new, case.seen)
        yield case.change("new_value", text, refusal=_SENSITIVE)
        return
    edit = AddValues(case.domain_owner, tuple(new))
    text = messages.new_values(new, case.seen)
    name = case.feature.name
    yield Change(name, "new_value", text, (edit,), values=new, seen=case.seen)


def invalid_text(case: Case) -> Iterator[Change]:
    """Bytes that are not UTF-8, in a feature with a string domain."""
    if case.domain is not None and case.seen.not_text:
        text = f"{messages.number(case.seen.not_text, 'value')} not UTF-8 text"
        refusal = "a domain lists text only, so the data must be corrected"
        yield case.change("invalid_text", text, refusal=refusal)


def out_of_range(case: Case) -> Iterator[Change]:
    """Numbers below or above the domain's bounds."""
    feature, seen = case.feature, case.seen
    name = feature.WhichOneof("domain_info")
    allowed = (0, 1) if name == "bool_domain" else number_bounds(feature)
    if allowed is None:
        return
    low, high = allowed
    edits: list[Edit] = []
    if low is not None and seen.low is not None and seen.low < low:
        edits.append(Put(case.owner, (name, "min"), seen.low))
    if high is not None and seen.high is not None and seen.high > high:
        edits.append(Put(case.owner, (name, "max"), seen.high))
    if not edits:
        return
    if case.sensitive:
        text = "values outside the schema's range"
        yield case.change("out_of_range", text, refusal=_SENSITIVE)
        return
    text = f"values are {messages.bounds(seen.low, seen.high)}, the schema allows "
    refusal = "a boolean is 0 or 1" if name == "bool_domain" else None
    text += messages.bounds(low, high)
    yield case.change("out_of_range", text, *edits, refusal=refusal)


def not_finite(case: Case) -> Iterator[Change]:
    """NaN and infinities, even if the schema does not forbid them."""
    parts = []
    if case.seen.nans:
        parts.append(f"{messages.number(case.seen.nans, 'value')} not a number (NaN)")
    if case.seen.infinities:
        parts.append("some values are infinite")
    if parts:
        text = ", ".join(parts)
        yield case.change("not_finite", text, refusal=_NO_INFINITIES)
