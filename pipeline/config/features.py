"""Config section ``features``: model inputs.

Transformed features carry the suffix ``_xf``, as in TFX's examples, because TFMA sees
raw and transformed features side by side.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from keyword import iskeyword
from typing import Annotated, ClassVar, Literal

from annotated_types import MinLen
from pydantic import AfterValidator, Field

from pipeline.config.label import Label, transformed_name
from sluice.config_section import (
    Channels,
    Count,
    Flag,
    NotEmpty,
    Number,
    Pixels,
    Section,
    Text,
    expect,
)

# The name after preprocessing of the feature with the weights of examples.
SAMPLE_WEIGHT_KEY = "sample_weight"


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Returns for each name one that is valid in signatures, layers and file names.

    TensorFlow turns ``image/encoded`` into ``image_encoded`` in some places and refuses
    it in others, and ignores case in signatures. Characters other than ASCII letters,
    digits and underscores become underscores, and what does not begin with a letter,
    or is a word of Python's, such as ``class``, gets the prefix ``feature_``. If this
    makes names equal, or leaves them different only in case, each of them also gets 12
    digits of its SHA-256.
    """
    plain = {name: _plain(name) for name in names}
    hashed = {
        name: f"{value}_{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        for name, value in plain.items()
    }
    taken = Counter(x.lower() for x in (*plain.values(), *hashed.values()))
    return {
        name: plain[name] if taken[plain[name].lower()] == 1 else hashed[name]
        for name in plain
    }


def _plain(name: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    is_valid = plain[:1].isalpha() and plain != "self" and not iskeyword(plain)
    return plain if is_valid else f"feature_{plain}"


def _clip(value: tuple[float | None, ...]) -> tuple[float | None, ...]:
    bounds = [bound for bound in value if bound is not None]
    if len(value) != 2 or not bounds or bounds != sorted(bounds):
        expect("two bounds, the first not above the second, such as [0, null]")
    return value


Clip = Annotated[tuple[Number | None, ...], AfterValidator(_clip)] | None


# What a feature of a kind may have per record: one value at most, one in every record,
# a fixed number (a shape in the schema), or any number.
Values = Literal["one", "every", "fixed", "any"]
_ALL_TYPES = ("INT", "FLOAT", "BYTES")


class _Kind(Section):
    kind: str
    """What the feature is turned into."""

    # Names of ``schema_pb2.FeatureType``.
    types: ClassVar[tuple[str, ...]] = ("INT", "BYTES")
    values: ClassVar[Values] = "one"
    # Whether it is turned into ids from 0, which a model embeds.
    is_categorical: ClassVar[bool] = False


class _Numbers(_Kind):
    types: ClassVar[tuple[str, ...]] = ("INT", "FLOAT")
    clip: Clip = None
    """Bounds such as `[0, 100]` or `[null, 100]`: smaller numbers count as the first,
    larger ones as the second. null: none."""
    log: Flag = False
    """Whether the logarithm of 1 + x is taken, after `clip`; of a negative number
    -log(1 - x)."""


class Numeric(_Numbers):
    """A number, as a z-score."""

    kind: Literal["numeric"] = "numeric"
    """What the feature is turned into."""
    missing_indicator: Flag = False
    """Whether the model is also given 1 where the number is missing, 0 elsewhere."""


class Vector(_Numbers):
    """A list of numbers, as many in each record: the schema has its shape."""

    values: ClassVar[Values] = "fixed"
    kind: Literal["vector"] = "vector"
    """What the feature is turned into."""
    scale: Literal["each", "all", "none"] = "each"
    """Z-scores of `each` number of the list by itself, or by mean and variance of `all`
    numbers, as for an embedding; `none`: numbers as they are."""


class Bucketized(_Kind):
    """A number, as the one of `buckets` quantiles that it falls into."""

    types: ClassVar[tuple[str, ...]] = ("INT", "FLOAT")
    is_categorical: ClassVar[bool] = True
    kind: Literal["bucketized"] = "bucketized"
    """What the feature is turned into."""
    buckets: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10
    """Number of quantile buckets."""


class Vocabulary(_Kind):
    """A string or a whole number, as its place among those seen in training."""

    is_categorical: ClassVar[bool] = True
    kind: Literal["vocabulary"] = "vocabulary"
    """What the feature is turned into."""
    top_k: Count | None = None
    """Number of most frequent values to keep. null: all."""
    oov_buckets: Count = 1
    """Number of hash buckets for all other values."""


# Dates that the kind `time` reads, a regular expression for Python and for RE2.
ISO_TIME = (
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?"
    r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


class Time(_Kind):
    """A time, as hour, weekday, month and age.

    It is a whole number of seconds since 1970 in UTC, or a string such as `2026-11-30`
    or `2026-11-30T08:15:00Z`. An offset from UTC is ignored: the hour is the one that
    is written. Other strings count as missing.
    """

    kind: Literal["time"] = "time"
    """What the feature is turned into."""
    parts: NotEmpty[tuple[Literal["hour", "weekday", "month", "age"], ...]] = (
        *("hour", "weekday", "month", "age"),
    )
    """What the model is given: a 1 for the `hour`, `weekday` or `month`, and 0 for all
    others; `age`: how long before the mean of the training data it is, as a z-score."""


class Hashed(_Kind):
    """A string or a whole number, as a hash; nothing is learned from the data."""

    is_categorical: ClassVar[bool] = True
    kind: Literal["hashed"] = "hashed"
    """What the feature is turned into."""
    buckets: Annotated[int, Field(strict=True, ge=2)] = 64
    """Number of hash buckets."""


class MultiHot(_Kind):
    """Any number of categories, as a 1 for each that a record has, and 0 for others."""

    values: ClassVar[Values] = "any"
    kind: Literal["multi_hot"] = "multi_hot"
    """What the feature is turned into."""
    top_k: Count | None = None
    """Number of most frequent categories to keep. null: those of the domain in the
    schema, or 1,000 without one."""
    oov_buckets: Count = 1
    """Number of hash buckets for all other categories."""

    @property
    def size(self) -> int:
        """The length of what it is turned into, of a resolved config."""
        return (self.top_k or 0) + self.oov_buckets


class Image(_Kind):
    """An encoded image (PNG, JPEG), decoded and resized."""

    types: ClassVar[tuple[str, ...]] = ("BYTES",)
    values: ClassVar[Values] = "every"
    kind: Literal["image"] = "image"
    """What the feature is turned into."""
    height: Pixels
    """Height after resizing, in pixels."""
    width: Pixels
    """Width after resizing, in pixels."""
    channels: Channels
    """1 for gray, 3 for RGB, 4 for RGBA."""
    resize: Literal["fit", "fill", "stretch"] = "stretch"
    """How an image of another shape becomes this one: `fit` shows all of it, between
    black margins; `fill` cuts off what is outside the middle; `stretch` changes its
    proportions."""


class RawPixels(_Kind):
    """The pixels of an image row by row, as bytes or as a list of numbers.

    Whole numbers are divided by 255; floats are taken as they are.
    """

    types: ClassVar[tuple[str, ...]] = _ALL_TYPES
    kind: Literal["pixels"] = "pixels"
    """What the feature is turned into."""
    height: Pixels
    """Height in pixels."""
    width: Pixels
    """Width in pixels."""
    channels: Channels
    """1 for gray, 3 for RGB, 4 for RGBA; they are the last dimension."""
    dtype: Literal["uint8", "float32"] = "uint8"
    """What bytes hold; float32 is little-endian."""

    @property
    def size(self) -> int:
        """The number of values."""
        return self.height * self.width * self.channels


class Tokens(_Kind):
    """Text, or a list of tokens, as the places of words in a vocabulary."""

    values: ClassVar[Values] = "any"
    is_categorical: ClassVar[bool] = True
    kind: Literal["text"] = "text"
    """What the feature is turned into."""
    form: Literal["bag", "sequence"] = "bag"
    """`bag`: which words there are, each once; `sequence`: in their order."""
    length: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 128
    """Number of words to keep, the first ones; shorter texts are padded with 0."""
    split: Flag = True
    """Whether strings are split into words, in lower case; false: each string of a list
    is a token, as each whole number is."""
    ngrams: Annotated[int, Field(strict=True, ge=1, le=5)] = 1
    """Largest number of neighbouring words that count as a word, too."""
    top_k: Count = 10_000
    """Number of most frequent words to keep."""
    oov_buckets: Count = 1
    """Number of hash buckets for all other words."""


class Cross(_Kind):
    """A combination of categorical features, as a hash; its name is a new one."""

    types: ClassVar[tuple[str, ...]] = ()
    is_categorical: ClassVar[bool] = True
    kind: Literal["cross"] = "cross"
    """What the feature is turned into."""
    of: Annotated[tuple[Text, ...], MinLen(2)]
    """Features whose kind is `bucketized`, `vocabulary` or `hashed`."""
    buckets: Annotated[int, Field(strict=True, ge=2)] = 1000
    """Number of hash buckets."""


class Passthrough(_Kind):
    """Values as they are, for a model of your own; a missing one is 0 or empty."""

    types: ClassVar[tuple[str, ...]] = _ALL_TYPES
    values: ClassVar[Values] = "any"
    kind: Literal["passthrough"] = "passthrough"
    """What the feature is turned into."""
    length: Count | None = None
    """Number of values to keep of a list of any length, the first ones; shorter lists
    are padded. null: records have one value, or the shape in the schema."""


FeatureSpec = Annotated[
    Numeric
    | Vector
    | Bucketized
    | Vocabulary
    | Time
    | Hashed
    | MultiHot
    | Image
    | RawPixels
    | Tokens
    | Cross
    | Passthrough,
    Field(discriminator="kind"),
]


class FeatureSet(Section):
    """Features and label as the nodes take them, filled in from the schema.

    Other changes of the config thus do not rerun Transform and Trainer.
    """

    features: dict[str, FeatureSpec]
    """By raw name, in the order of the config."""
    label: Label
    """With its classes."""
    sample_weight: Text | None = None
    """The raw feature with the weight of each example in training; after preprocessing
    it is ``SAMPLE_WEIGHT_KEY``, as it was. null: all are 1."""

    @property
    def transformed(self) -> dict[str, FeatureSpec]:
        """The features by transformed name."""
        return {transformed_name(name): spec for name, spec in self.features.items()}

    @property
    def vocabulary_names(self) -> dict[str, str]:
        """The name of a vocabulary, and of its file, by the feature's raw name."""
        names = identifiers(self.transformed)
        return {name: names[transformed_name(name)] for name in self.features}

    @property
    def images(self) -> dict[str, Image | RawPixels]:
        """The images, encoded or as pixels, by transformed name."""
        return {
            name: spec
            for name, spec in self.transformed.items()
            if isinstance(spec, Image | RawPixels)
        }
