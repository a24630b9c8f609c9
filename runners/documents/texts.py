"""Texts document: lengths and words of the features that a model reads as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from itertools import chain, islice, product
from statistics import median
from typing import Any

from runners.documents.examples import (
    SERVING_DIR,
    as_text,
    read_examples,
    split_names,
)
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for
from sluice.tfrecords.parse_tf_example import values_of

# Of each split.
MAX_TEXTS = 2_000
MAX_WORDS = 15
_FEATURES_FILE = "assets.extra/features.json"


def texts(
    model_uris: Sequence[str],
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns lengths and words of the first texts of every split, by feature.

    None for a model of another trainer, and without such features, sensitive ones
    aside. Words are those of the preprocessing, and ``unknown`` is the share that is
    not in the model's vocabulary. Private data has no ``top``.
    """
    uri = f"{model_uris[0]}/{SERVING_DIR}"
    if not storage_for(uri).exists(f"{uri}/{_FEATURES_FILE}"):
        return None
    # Imported here: in a pipeline built elsewhere the name may be another package.
    from pipeline.config.features import FeatureSet

    with local_copy(uri) as folder:
        content = (folder / _FEATURES_FILE).read_bytes()
        feature_set = FeatureSet.model_validate_json(content)
        vocabularies = {
            name: {*(folder / "assets" / file).read_bytes().splitlines()}
            for name, file in feature_set.vocabulary_names.items()
            if (spec := feature_set.features[name]).kind == "text" and spec.split
            if name not in privacy.sensitive
        }
    if not vocabularies:
        return None
    from pipeline.training.preprocessing import split_words

    found: dict[str, dict[str, Any]] = {}
    for name, split in product(vocabularies, split_names(examples)):
        records = islice(read_examples(examples.uri, [split]), MAX_TEXTS)
        rows = (values_of(record.features().get(name)) for record in records)
        if values := [b" ".join(x) for x in rows if x and isinstance(x[0], bytes)]:
            words = split_words(values).to_list()
            counts = Counter(chain(*words))
            unknown = counts.total() - sum(counts[x] for x in vocabularies[name])
            top = [] if privacy.private else counts.most_common(MAX_WORDS)
            found.setdefault(name, {})[split] = {
                "texts": len(values),
                "characters": _lengths(x.decode(errors="replace") for x in values),
                "words": _lengths(words),
                "unknown": unknown / (counts.total() or 1),
                "top": [[as_text(word), count] for word, count in top],
            }
    return {"features": found} if found else None


def _lengths(values: Iterable[Sized]) -> list[float]:
    """Returns the median length and the largest one."""
    lengths = [*map(len, values)]
    return [median(lengths), max(lengths)]
