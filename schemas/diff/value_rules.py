"""What a feature's values are: new ones, out of range, no numbers, no text."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.diff import messages
from schemas.diff.case import Case
from schemas.diff.change import Change
from schemas.domains import number_bounds
from schemas.edit.edit import AddValues, Edit, Put

_SENSITIVE = "the feature is sensitive: its values are not written to a schema"
_NO_INFINITIES = (
    "no schema makes it right; a rule of validate.rules in the config lets it pass"
)


def new_value(case: Case) -> Iterator[Change]:
    """Strings that the domain does not list."""
    if case.domain is None:
        return
    known = set(case.domain.value)
    new = {value: n for value, n in case.seen.counts.items() if value not in known}
    # TFDV wants so much of the values in the domain: all, if nothing is said.
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
    """Bytes that no domain of strings can list."""
    if case.domain is not None and case.seen.not_text:
        text = f"{messages.number(case.seen.not_text, 'value')} not UTF-8 text"
        refusal = "a domain lists text only, so the data has to be mended"
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
        text = "values go beyond the schema's range"
        yield case.change("out_of_range", text, refusal=_SENSITIVE)
        return
    text = f"values {messages.bounds(seen.low, seen.high)} go beyond "
    refusal = "a truth value is 0 or 1" if name == "bool_domain" else None
    text += messages.bounds(low, high)
    yield case.change("out_of_range", text, *edits, refusal=refusal)


def not_finite(case: Case) -> Iterator[Change]:
    """NaN and infinities, which are wrong whether or not the schema says so."""
    parts = []
    if case.seen.nans:
        parts.append(f"{messages.number(case.seen.nans, 'value')} not a number (NaN)")
    if case.seen.infinities:
        parts.append("some values are infinite")
    if parts:
        text = ", ".join(parts)
        yield case.change("not_finite", text, refusal=_NO_INFINITIES)
