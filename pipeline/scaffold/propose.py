"""Proposes a schema and a config: features, model, metrics and thresholds.

The proposed thresholds only rule out models that have learned nothing. The quality that
is needed cannot be derived from data; comments in the config ask the user to set it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.choose_features import (
    FeatureChoice,
    choose_features,
    find_leaks,
    group_feature,
)
from pipeline.scaffold.choose_label import LabelCandidate, label_candidate
from pipeline.scaffold.guess_splits import SplitGuess
from pipeline.scaffold.infer_schema import infer_schema
from pipeline.scaffold.sample import Sample
from pipeline.scaffold.semantic_type import semantic_type_of
from pipeline.scaffold.summarize import FeatureSummary, Summary
from sluice.errors import DataError

# Accuracy limit, from the largest class's share (0) to a perfect model (1).
_LEARNED = 0.05
_SMALL = 5000
_POSITIVE = frozenset(
    "yes true positive pos 1 y t spam fraud churn churned bad default malignant".split()
)


@dataclass(frozen=True)
class Proposal:
    """Proposed config and schema of a data set, with the reasons.

    Attributes:
      split_by: the feature by which records are split, or None.
      sampled: which records were read, in words.
      complete: whether all records were read.
      classes: in the order of the model's outputs; None unless there are two.
      majority: fraction of the records in the largest class.
      features: all but the label.
      warnings: what the user should check, a clause each.
    """

    name: str
    data_dir: str
    splits: SplitGuess
    split_by: str | None
    summary: Summary
    sampled: str
    complete: bool
    label: LabelCandidate
    classes: tuple[int, ...] | tuple[str, ...] | None
    majority: float
    features: tuple[FeatureChoice, ...]
    schema: schema_pb2.Schema
    warnings: tuple[str, ...]

    @property
    def used(self) -> list[FeatureChoice]:
        """The features that the model is given."""
        return [choice for choice in self.features if choice.spec is not None]

    @property
    def sensitive(self) -> list[str]:
        """Features whose values must not be shown."""
        return [
            choice.name
            for choice in self.features
            if semantic_type_of(self.summary.features[choice.name]).name == "sensitive"
        ]

    @property
    def not_finite(self) -> list[str]:
        """Features with NaN or infinite values."""
        features = self.summary.features.values()
        return [f.name for f in features if f.nans or f.infinities]

    @property
    def model(self) -> str:
        """The built-in model that fits the features."""
        kinds = [str((choice.spec or {})["kind"]) for choice in self.used]
        if kinds == ["image"]:
            return "cnn"
        categories = {"vocabulary", "hashed", "bucketized"}
        if "image" not in kinds and categories & set(kinds):
            return "wide_deep"
        return "dense"

    @property
    def image_formats(self) -> list[str]:
        """Formats of the images that the model uses."""
        images = [
            image
            for choice in self.used
            if choice.semantic_type.name == "image"
            for image in self.summary.features[choice.name].images
        ]
        return list(dict.fromkeys(image.format for image in images))

    @property
    def is_binary(self) -> bool:
        """Whether the label has two classes."""
        return self.classes is not None

    @property
    def accuracy_limit(self) -> float:
        """Minimum accuracy, 0 to 1: a little above that of a constant prediction."""
        return round(self.majority + _LEARNED * (1 - self.majority), 3)

    @property
    def batch_size(self) -> int:
        """Batch size: small for few records, so that an epoch has enough steps."""
        return 32 if self.complete and self.summary.records < _SMALL else 128


def propose(
    name: str,
    data_dir: str,
    splits: SplitGuess,
    sample: Sample,
    summary: Summary,
    label: str,
) -> Proposal:
    """Returns the proposed config and schema; the sample is read once more.

    Raises:
      DataError: no feature is usable; gives the reason for each.
    """
    split_by = group_feature(summary, label) if splits.files else None
    names = [other for other in summary.features if other != label]
    leaks = find_leaks(sample.records(), summary, label, names)
    features = tuple(choose_features(summary, label, leaks, split_by))
    if not any(choice.spec for choice in features):
        raise DataError(
            "no feature can be used by a model",
            where=f"the records of {sample.files[0].parent}",
            examples=[f"{choice.name}: {choice.why}" for choice in features],
            hint="add a feature with one value per record, or write the config by "
            "hand, with your own preprocessing_fn (docs/guide.md)",
        )
    counts = summary.features[label].counts
    return Proposal(
        name=name,
        data_dir=data_dir,
        splits=splits,
        split_by=split_by,
        summary=summary,
        sampled=sampled(sample, summary),
        complete=sample.complete,
        label=label_candidate(summary.features[label]),
        classes=_two_classes(summary.features[label]),
        majority=max(counts.values()) / summary.records,
        features=features,
        schema=infer_schema(summary, label),
        warnings=tuple(_warnings(summary, label, features, sample.complete)),
    )


def sampled(sample: Sample, summary: Summary) -> str:
    """Returns which records were read, such as ``all 1,797 records of 8 files``."""
    count = len(sample.read)
    files = "1 file" if count == 1 else f"{count:,} files"
    if sample.complete:
        return f"all {summary.records:,} records of {files}"
    of = f" (of {len(sample.files):,})" if count < len(sample.files) else ""
    return f"the first {sample.per_file:,} records, at most, of {files}{of}"


def _two_classes(feature: FeatureSummary) -> tuple[int, ...] | tuple[str, ...] | None:
    """Returns two classes, the positive one second; None where there are not two."""
    low, high = int(feature.low or 0), int(feature.high or 0)
    if feature.kind == "int":
        return (low, high) if high - low == 1 else None
    if feature.distinct != 2:
        return None
    values = [value for value in feature.counts if isinstance(value, bytes)]
    # The rarer value is the positive one unless a name says otherwise.
    values.sort(key=lambda value: (-feature.counts[value], value))
    names = [value.decode() for value in values]
    positive = [name for name in names if name.lower() in _POSITIVE]
    if len(positive) == 1:
        names.sort(key=lambda name: name in positive)
    return tuple(names)


def _warnings(
    summary: Summary, label: str, features: tuple[FeatureChoice, ...], complete: bool
) -> list[str]:
    found = []
    if not complete:
        found.append(
            "not all records were read: if the files are sorted, the schema may lack "
            "classes and categories"
        )
    truth = summary.features[label]
    if truth.kind == "int":
        unseen = int(truth.high or 0) - int(truth.low or 0) + 1 - truth.distinct
        if unseen:
            found.append(
                f"the label's values have gaps: {unseen:,} of the classes "
                f"{truth.low} to {truth.high} were not seen"
            )
    rare = [value for value, count in truth.counts.items() if count < 10]
    if rare:
        verb = "has" if len(rare) == 1 else "have"
        found.append(
            f"{len(rare):,} of the label's classes {verb} fewer than 10 records"
        )
    loud = ("mixed_types", "constant", "identifier", "rare", "not_finite", "leak")
    for choice in features:
        if choice.semantic_type.name in loud:
            found.append(f"{choice.name} is left out: {choice.why}")
    return found
