"""Integer domains beyond 2^53, where TFDV's statistics are rounded."""

from __future__ import annotations

from typing import Any

import pytest

from components.data_verdict.policy import Policy, Rule

pytestmark = pytest.mark.tf

LARGEST = 2**63 - 1
ONLY_SCHEMA = Policy(rules=(Rule(action="ignore", anomaly="split_drift"),))


def rows_of(bench: Any, train: Any = None, **options: Any) -> list[Any]:
    """Returns the rows that say that a number is out of range."""
    verdict = bench.judge(train, policy=ONLY_SCHEMA, **options)
    return [row for row in verdict.rows if row.kind == "out_of_range"]


def schema_of(bench: Any, domain: str) -> str:
    return bench.schema.replace("int_domain { min: 0 max: 1", f"int_domain {{ {domain}")


@pytest.mark.parametrize(
    "value", [LARGEST, LARGEST - 511, LARGEST - 600, 2**53 + 1, -(2**63), -LARGEST]
)
def test_a_number_beyond_the_doubles_is_out_of_range(bench, value):
    (row,) = rows_of(bench, bench.changed(17, label=[value]))

    assert not row.passed
    assert (row.feature, row.slice, row.limit) == ("label", "train", "0 to 1")
    path = bench.folder / "train 0.tfrecord"
    assert row.examples == (f"{path}, record 17: label {value}",)


@pytest.mark.parametrize("which", ["train", "evaluation", "serving"])
def test_every_split_is_checked(bench, which):
    options = {which: bench.changed(3, label=[LARGEST])}

    (row,) = rows_of(bench, **options)

    slices = {"train": "train", "evaluation": "eval", "serving": "serving"}
    assert (row.feature, row.slice) == ("label", slices[which])


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (f"min: 0 max: {LARGEST - 1}", LARGEST - 1, LARGEST),
        (f"min: 0 max: {2**53}", 2**53, 2**53 + 1),
        (f"min: 0 max: {2**53 + 3}", 2**53 + 3, 2**53 + 4),
        (f"min: {-LARGEST} max: 1", -LARGEST, -(2**63)),
    ],
)
def test_records_decide_if_limit_and_number_are_the_same_double(
    bench, domain, inside, outside
):
    schema = schema_of(bench, domain)

    assert rows_of(bench, bench.changed(17, label=[inside]), schema=schema) == []
    (row,) = rows_of(bench, bench.changed(17, label=[outside]), schema=schema)

    assert not row.passed
    assert row.examples[0].endswith(f"record 17: label {outside}")
    assert str(domain.split()[-1]) in row.limit or str(domain.split()[1]) in row.limit


def test_unreadable_records_are_reported_as_not_compared(bench, monkeypatch):
    from components.tfrecord_gen.checking import scan as scan_module

    def cut(path: str, *limits: Any) -> Any:
        yield from list(scan(path, *limits))[:50]

    scan = scan_module.scan
    monkeypatch.setattr(scan_module, "scan", cut)
    train = bench.changed(99, label=[LARGEST])
    schema = schema_of(bench, f"min: 0 max: {LARGEST - 1}")

    verdict = bench.judge(train, schema=schema, policy=ONLY_SCHEMA)

    (row,) = verdict.failures
    assert (row.kind, row.feature, row.slice) == ("not_compared", "label", "train")
    assert "records could not all be read again" in row.why


def test_a_sensitive_number_is_withheld(bench):
    (row,) = rows_of(bench, bench.changed(17, label=[LARGEST]), sensitive='["label"]')

    assert (row.limit, row.actual) == ("the schema's range", "anomaly")
    assert row.examples == (f"{bench.folder / 'train 0.tfrecord'}, record 17",)
    assert "9223372" not in bench.text() and "9.223" not in bench.text()


def test_a_rule_lets_it_pass(bench):
    rules = (
        *ONLY_SCHEMA.rules,
        Rule(action="warn", feature="label", anomaly="out_of_range"),
    )
    train = bench.changed(17, label=[LARGEST])

    verdict = bench.judge(train, policy=Policy(rules=rules))

    assert verdict.passed
    assert [row.feature for row in verdict.warnings] == ["label"]


def test_numbers_without_bounds_are_not_checked(bench):
    schema = schema_of(bench, "")

    assert rows_of(bench, bench.changed(17, label=[LARGEST]), schema=schema) == []
