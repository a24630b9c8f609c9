"""The parts of a config that say where the data is, and what of it is accepted."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from components.tfrecord_gen.checking.image_check import ImageCheck, ImageFormat
from pipeline.config_section import Section
from pipeline.config_types import Count, Number, Pattern, Text, expect

Action = Literal["fail", "warn", "ignore"]
SplitName = Literal["train", "eval", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

_Positive = Annotated[Number, Field(gt=0)]
_Fraction = Annotated[Number, Field(ge=0, le=1)]


class Splits(Section):
    """File patterns below ``data.dir``, one per split.

    They may hold ``{SPAN}``, or ``{YYYY}{MM}{DD}``, and ``{VERSION}``.

    Attributes:
      train: what the model and the transform learn from.
      eval: early stopping and tuning.
      test: what the gates judge; without it they judge on ``eval`` and say so.
    """

    train: Pattern
    eval: Pattern
    test: Pattern | None = None


class HashSplits(Section):
    """How many of the buckets that records are hashed into make up each split.

    Attributes:
      train: as in ``Splits``.
      eval: likewise.
      test: likewise; None for no such split.
      by: a feature whose values are hashed, so that records of the same patient or
        user are never in two splits; None hashes the whole record.
    """

    train: Count
    eval: Count
    test: Count | None = None
    by: Text | None = None

    @property
    def buckets(self) -> dict[str, int]:
        """The number of buckets of each split that there is."""
        counts = {name: getattr(self, name) for name in SPLITS}
        return {name: count for name, count in counts.items() if count}


class Data(Section):
    """Where the TFRecords are: files for each split, or all files and their hash.

    Attributes:
      dir: relative to the project root, absolute, or ``gs://BUCKET/PATH``.
      splits: files of each split.
      files: a pattern of all files; their records go where ``hash_splits`` says.
      hash_splits: goes with ``files``.
      serving: a pattern of records as clients have sent them, to compare with.
    """

    dir: Text
    splits: Splits | None = None
    files: Pattern | None = None
    hash_splits: HashSplits | None = None
    serving: Pattern | None = None

    @model_validator(mode="after")
    def _has_splits(self) -> Data:
        if (self.splits is None) == (self.files is None):
            expect("given one of: splits, or files with hash_splits")
        if (self.files is None) != (self.hash_splits is None):
            expect("given files and hash_splits together")
        return self

    @property
    def patterns(self) -> dict[str | None, str]:
        """Patterns by split; None stands for records that are hashed into splits."""
        if self.splits is None:
            return {None: self.files or ""}
        found = {name: getattr(self.splits, name) for name in SPLITS}
        return {name: pattern for name, pattern in found.items() if pattern}

    @property
    def split_names(self) -> list[str]:
        """The splits that there are, ``train`` first."""
        if self.hash_splits is not None:
            return list(self.hash_splits.buckets)
        return [name for name in self.patterns if name]


class CompleteWhen(Section):
    """How a span is known to be complete; ``always`` stands for neither.

    Attributes:
      marker: a file of this name lies in the span's directory.
      quiet_for_s: none of its files has changed for so many seconds.
    """

    marker: Text | None = None
    quiet_for_s: _Positive | None = None


def _complete_when(value: Any) -> Any:
    if value == "always":
        return CompleteWhen()
    one = isinstance(value, dict) and sum(map(bool, value.values())) < 2
    if not (one or isinstance(value, CompleteWhen)):
        expect("always, {marker: NAME} or {quiet_for_s: SECONDS}")
    return value


class Images(Section):
    """What an image must be before it is trained on, beside that TensorFlow decodes it.

    Its size is told from its header, and no image is decoded that is too large.

    Attributes:
      min_side: in pixels, of the shorter side.
      max_side: in pixels, of the longer side.
      max_pixels: height times width, so that a small file cannot fill the memory.
      channels: of the encoded image: 1 gray, 3 colour, 4 with alpha; None for any, as
        training decodes all to what ``features`` says.
      formats: those allowed. Of a ``gif`` training decodes the first frame, but reads
        all: their pixels count together.
    """

    min_side: Count = ImageCheck.min_side
    max_side: Count = ImageCheck.max_side
    max_pixels: Count = ImageCheck.max_pixels
    channels: Literal[1, 3, 4] | None = None
    formats: Annotated[tuple[ImageFormat, ...], Field(min_length=1)] = (
        ImageCheck.formats
    )


class Examples(Section):
    """Which records are taken, and how bad they may be.

    Attributes:
      window: how many spans, the newest complete ones.
      complete_when: ``always``, ``{marker: NAME}`` or ``{quiet_for_s: SECONDS}``.
      max_corrupt_fraction: of records, bytes or files that may be bad; they are put
        aside. Above it the data gate stops.
      images: looks into every image; None does not.
    """

    window: Count = 1
    complete_when: Annotated[CompleteWhen, BeforeValidator(_complete_when)] = (
        CompleteWhen()
    )
    max_corrupt_fraction: _Fraction = 0.0
    images: Images | None = None


class Rule(Section):
    """What is done about anomalies; one of several, of which the last to match counts.

    Attributes:
      feature: None for every feature.
      anomaly: a kind, such as ``new_value``; None for every kind.
      action: ``fail`` stops the run, ``warn`` is shown, ``ignore`` is only counted.
    """

    feature: Text | None = None
    anomaly: Text | None = None
    action: Action


class Validate(Section):
    """What the data gate lets pass.

    Attributes:
      default: what is done about anomalies that no rule names.
      rules: exceptions.
      min_examples: per split; 1 where nothing is said.
      max_examples: per split.
      max_count_change: of a split, against the last accepted span: 0.5 allows half as
        many and half as many again.
      stale_after_h: hours; a run does not begin on a newest span older than this.
    """

    default: Action = "fail"
    rules: tuple[Rule, ...] = ()
    min_examples: dict[SplitName, Count] = {}
    max_examples: dict[SplitName, Count] = {}
    max_count_change: _Positive | None = None
    stale_after_h: _Positive | None = None


def _once(names: Any) -> Any:
    if len(set(names)) != len(names):
        expect("each name once")
    return names


Sensitive = Annotated[tuple[Text, ...], AfterValidator(_once)]
