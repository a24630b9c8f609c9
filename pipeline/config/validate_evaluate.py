"""Validates a config's ``evaluate`` against the schema: classes, slices and values."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.evaluate import Evaluate
from pipeline.config.problems import KeyPath, Problems
from schemas import loader
from sluice.errors import did_you_mean

# For more than two classes TFMA pools the one-against-the-rest predictions of all
# classes, most of which are easy negatives: of ten classes, nine answers in ten. Found
# by running each on two and on seven classes.
TWO_CLASSES_ONLY = frozenset(
    """
    AUC AUCPrecisionRecall BalancedAccuracy BinaryAccuracy Calibration F1Score FNR FPR
    FalseNegatives FalsePositives MatthewsCorrelationCoefficient MeanLabel
    MeanPrediction NPV PPV Precision PrecisionAtRecall Prevalence Recall
    RecallAtFalsePositiveRate RecallAtPrecision SensitivityAtSpecificity Specificity
    SpecificityAtSensitivity TNR TPR ThresholdAtRecall TrueNegatives TruePositives
    """.split()
)
# With these such a metric is of one class, or of the best ones.
_CHOSEN = {"class_id", "top_k"}


def check_evaluate(
    evaluate: Evaluate, schema: schema_pb2.Schema, classes: int, problems: Problems
) -> None:
    """Adds problems of metrics and slices; the number of classes is 0 if not known."""
    for index, metric in enumerate(evaluate.metrics):
        meaningless = metric.class_name in TWO_CLASSES_ONLY and classes > 2
        if meaningless and not _CHOSEN & metric.params.keys():
            problems.add(
                ("evaluate", "metrics", index),
                f"{metric.class_name} is for two classes: of {classes}, TFMA pools "
                "one-against-the-rest predictions, most of them easy negatives. Use "
                "SparseCategoricalAccuracy or SparseCategoricalCrossentropy",
            )
    features = {feature.name: feature for feature in schema.feature}
    for index, names in enumerate(evaluate.slices):
        for position, name in enumerate(names):
            path: KeyPath = ("evaluate", "slices", index, position)
            if name not in features:
                problems.unknown_feature(path, name, features)
            elif name in names[:position]:
                problems.add(path, f"the feature {name!r} is crossed with itself")
            elif features[name].type == schema_pb2.FLOAT:
                problems.warn(
                    path, f"{name!r} is FLOAT: each of its values becomes a slice"
                )
    sliced = [set(names) for names in evaluate.slices]
    for index, threshold in enumerate(evaluate.thresholds):
        path = ("evaluate", "thresholds", index, "slice")
        wanted = list(threshold.slice or ())
        if wanted and set(wanted) not in sliced:
            what = f"{', '.join(wanted)} is not in evaluate.slices"
            given = [", ".join(item) for item in evaluate.slices]
            problems.unknown(path, what, ", ".join(wanted), given)
        elif isinstance(threshold.slice, dict):
            for name, value in threshold.slice.items():
                problem = name in features and _problem(value, features[name], schema)
                if problem:
                    problems.add((*path, name), problem)


def _problem(
    value: int | str, feature: schema_pb2.Feature, schema: schema_pb2.Schema
) -> str | None:
    """Returns why no example is in the slice of a value."""
    is_text = feature.type == schema_pb2.BYTES
    if isinstance(value, str) != is_text:
        wanted = "a string: quote it" if is_text else "a whole number"
        return f"{feature.name!r} takes {wanted}"
    known = loader.class_values(schema, feature.name)
    if known is None or value in known:
        return None
    hint = did_you_mean(value, known) or ", ".join(map(str, known[:12]))
    return f"{value!r} is not in the domain of {feature.name!r}; {hint}"
