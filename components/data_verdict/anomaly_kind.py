"""Kinds of data anomalies, as named in a policy, and their rows in the verdict.

TFDV has nearly ninety anomaly types, many of them the same for different value types.
Each is mapped to one of the kinds that ``KINDS`` explains; a type that a newer TFDV
adds is ``other`` until it is listed here.
"""

from __future__ import annotations

from typing import Any

from sluice.record.verdict import Check

KINDS = {
    "new_value": "a value that the feature's domain does not list",
    "out_of_range": "a number outside the bounds of the feature's domain",
    "not_finite": "NaN or an infinity",
    "invalid_text": "bytes that are not UTF-8, in a feature of text",
    "missing": "a feature in fewer examples than the schema asks for, or in none",
    "new_feature": "a feature that the schema does not know",
    "wrong_type": "values of another type than the schema's",
    "wrong_shape": "more or fewer values in an example than the schema says",
    "not_unique": "more or fewer different values than the schema says",
    "drift": "values distributed otherwise than in the data that was accepted last",
    "split_drift": "values distributed otherwise in train than in eval",
    "skew": "values distributed otherwise than in what clients have sent",
    "not_compared": "a comparator or a limit of the schema that cannot be measured",
    "count": "more or fewer examples in a split than the config allows",
    "count_change": "a number of examples far from that of the data accepted last",
    "corrupt": "more damaged records than the config allows",
    "duplicate_shard": "the same file content more than once",
    "missing_shard": "a file that its set's numbering announces, but is not there",
    "manifest": "files that are not what their manifest says",
    "other": "an anomaly of TFDV that has no name here",
}
OF_NO_FEATURE = (
    "count",
    "count_change",
    "corrupt",
    "duplicate_shard",
    "missing_shard",
    "manifest",
)
COMPARISON_NAMES = {
    "drift": "drift since the data accepted last",
    "split_drift": "train against eval",
    "skew": "training-serving skew",
}
# What `sluice schema diff` shows, and `accept` can write into the schema.
SCHEMA_KINDS = (
    "new_value",
    "out_of_range",
    "missing",
    "new_feature",
    "wrong_type",
    "wrong_shape",
    "invalid_text",
)

_TYPES = {
    "new_value": """BOOL_TYPE_BIG_INT BOOL_TYPE_SMALL_INT BOOL_TYPE_UNEXPECTED_STRING
        BOOL_TYPE_UNEXPECTED_FLOAT ENUM_TYPE_UNEXPECTED_STRING_VALUES""",
    "out_of_range": """FLOAT_TYPE_BIG_FLOAT FLOAT_TYPE_SMALL_FLOAT INT_TYPE_BIG_INT
        INT_TYPE_SMALL_INT""",
    "not_finite": "FLOAT_TYPE_HAS_NAN FLOAT_TYPE_HAS_INF",
    "invalid_text": "ENUM_TYPE_INVALID_UTF8",
    "missing": """FEATURE_TYPE_LOW_FRACTION_PRESENT FEATURE_TYPE_LOW_NUMBER_PRESENT
        FEATURE_TYPE_NOT_PRESENT FEATURE_TYPE_NO_VALUES SCHEMA_MISSING_COLUMN
        SPARSE_FEATURE_MISSING_VALUE SPARSE_FEATURE_MISSING_INDEX
        WEIGHTED_FEATURE_MISSING_VALUE WEIGHTED_FEATURE_MISSING_WEIGHT""",
    "new_feature": "SCHEMA_NEW_COLUMN",
    "wrong_type": """BOOL_TYPE_BYTES_NOT_INT BOOL_TYPE_BYTES_NOT_STRING
        BOOL_TYPE_FLOAT_NOT_INT BOOL_TYPE_FLOAT_NOT_STRING BOOL_TYPE_INT_NOT_STRING
        BOOL_TYPE_STRING_NOT_INT ENUM_TYPE_BYTES_NOT_STRING ENUM_TYPE_FLOAT_NOT_STRING
        ENUM_TYPE_INT_NOT_STRING FLOAT_TYPE_NOT_FLOAT FLOAT_TYPE_STRING_NOT_FLOAT
        FLOAT_TYPE_NON_STRING FLOAT_TYPE_UNKNOWN_TYPE_NUMBER INT_TYPE_INT_EXPECTED
        INT_TYPE_NOT_INT_STRING INT_TYPE_NOT_STRING INT_TYPE_STRING_EXPECTED
        INT_TYPE_UNKNOWN_TYPE_NUMBER STRING_TYPE_NOW_FLOAT STRING_TYPE_NOW_INT
        SEMANTIC_DOMAIN_UPDATE UNEXPECTED_DATA_TYPE""",
    "wrong_shape": """FEATURE_TYPE_HIGH_NUMBER_VALUES FEATURE_TYPE_LOW_NUMBER_VALUES
        FEATURE_TYPE_UNEXPECTED_REPEATED SPARSE_FEATURE_LENGTH_MISMATCH
        WEIGHTED_FEATURE_LENGTH_MISMATCH VALUE_NESTEDNESS_MISMATCH
        EMBEDDING_SHAPE_INVALID INVALID_FEATURE_SHAPE""",
    "not_unique": """FEATURE_TYPE_HIGH_UNIQUE FEATURE_TYPE_LOW_UNIQUE
        FEATURE_TYPE_NO_UNIQUE""",
    # Only the caller of TFDV knows which of the comparisons it was.
    "drift": """COMPARATOR_L_INFTY_HIGH COMPARATOR_JENSEN_SHANNON_DIVERGENCE_HIGH
        COMPARATOR_NORMALIZED_ABSOLUTE_DIFFERENCE_HIGH
        COMPARATOR_TREATMENT_DATA_MISSING""",
    "skew": "SCHEMA_TRAINING_SERVING_SKEW",
    "not_compared": "COMPARATOR_CONTROL_DATA_MISSING STATS_NOT_AVAILABLE",
    "count": "NO_DATA_IN_SPAN DATASET_LOW_NUM_EXAMPLES DATASET_HIGH_NUM_EXAMPLES",
    "count_change": "COMPARATOR_LOW_NUM_EXAMPLES COMPARATOR_HIGH_NUM_EXAMPLES",
}
_KIND_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}


def anomaly(kind: str, split: str, check: str, why: str, **fields: Any) -> Check:
    """Returns the row of an anomaly, to which the policy is not applied yet.

    Args:
      kind: one of ``KINDS``.
      split: the split, ``serving``, or ``overall``.
      check: what was checked.
      why: one sentence, without values of sensitive features.
      **fields: further fields of the row.
    """
    known: dict[str, Any] = {"limit": None, "baseline": None, "actual": "anomaly"}
    return Check(check, split, passed=False, why=why, kind=kind, **known | fields)


def remedy(kind: str) -> tuple[str, str | None]:
    """Returns what a person can do about a kind, and the verb that helps."""
    if kind == "corrupt":
        text = "write or copy the files again, or raise examples.max_corrupt_fraction"
        return text, None
    if kind in ("duplicate_shard", "missing_shard", "manifest"):
        return "make the files and their manifest agree", None
    if kind in SCHEMA_KINDS:
        text = "correct the data; or, if the data is right, the schema"
        return text, "schema diff"
    if kind in COMPARISON_NAMES:
        return (
            "correct the data, or raise the limit of the comparator in the schema",
            None,
        )
    return "correct the data, or the limits in the config's `validate`", None


def anomaly_kind(reason_type: int) -> str:
    """Returns the kind of one of TFDV's types (``AnomalyInfo.Type``)."""
    # Not above: a config's policy needs the kinds only, in every command.
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    known = anomalies_pb2.AnomalyInfo.Type.DESCRIPTOR.values_by_number.get(reason_type)
    return _KIND_OF.get(known.name, "other") if known else "other"
