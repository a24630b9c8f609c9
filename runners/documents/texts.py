"""Texts document: lengths and words of the features that a model reads as text."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from runners.documents.examples import (
    SERVING_DIR,
    as_text,
    read_examples,
    split_names,
    values_of,
)
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for

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
    features: dict[str, dict[str, Any]] = {name: {} for name in vocabularies}
    for split in split_names(examples) if vocabularies else ():
        records = [*islice(read_examples(examples.uri, [split]), MAX_TEXTS)]
        for name, known in vocabularies.items():
            rows = [values_of(record.features().get(name)) for record in records]
            values = [b" ".join(x) for x in rows if x and isinstance(x[0], bytes)]
            if values:
                features[name][split] = _described(values, known, privacy)
    found = {name: by_split for name, by_split in features.items() if by_split}
    return {"features": found} if found else None


def _described(
    texts: Sequence[bytes], known: set[bytes], privacy: Privacy
) -> Mapping[str, Any]:
    from pipeline.training.preprocessing import split_words

    words = split_words(texts).to_list()
    counts = Counter(word for row in words for word in row)
    unknown = sum(count for word, count in counts.items() if word not in known)
    top = [] if privacy.private else counts.most_common(MAX_WORDS)
    lengths = {
        "characters": [len(text.decode(errors="replace")) for text in texts],
        "words": [*map(len, words)],
    }
    return {
        "texts": len(texts),
        **{key: [statistics.median(x), max(x)] for key, x in lengths.items()},
        "unknown": unknown / (counts.total() or 1),
        "top": [[as_text(word), count] for word, count in top],
    }
