"""Transformed features of a config, known without a run of Transform.

The preprocessing function is traced as Transform traces it. What only the data tells,
the sizes of vocabularies, is assumed.
"""

from __future__ import annotations

import functools
import tempfile
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform import impl_helper, schema_inference
from tensorflow_transform.tf_metadata import schema_utils

from pipeline.config.features import (
    FeatureSet,
    Vocabulary,
    identifier,
    transformed_name,
)
from pipeline.training.build import load_function

VOCABULARY_SIZE = 1000


class TracedPreprocessing:
    """Stands in for the ``tft.TFTransformOutput`` of a Transform that has not run."""

    def __init__(
        self, function: str, schema: schema_pb2.Schema, feature_set: FeatureSet
    ) -> None:
        preprocessing_fn = functools.partial(
            load_function(function),
            custom_config={"feature_set": feature_set.model_dump()},
        )
        raw = schema_utils.schema_as_feature_spec(schema).feature_spec
        # Public functions of Transform need data, and a run of Beam (1.16 and 1.21).
        with tempfile.TemporaryDirectory() as directory:
            graph, _, outputs = impl_helper.trace_preprocessing_function(
                preprocessing_fn,
                impl_helper.get_type_specs_from_feature_specs(raw),
                use_tf_compat_v1=False,
                base_temp_dir=directory,
            )
        self._schema = schema_inference.infer_feature_schema(outputs, graph)
        self._sizes = {
            identifier(transformed_name(name)): spec.top_k or VOCABULARY_SIZE
            for name, spec in feature_set.features.items()
            if isinstance(spec, Vocabulary)
        }

    @property
    def assumptions(self) -> list[str]:
        """The assumed sizes of vocabularies, one line each."""
        return [
            f"{size:,} values in the vocabulary {name}"
            for name, size in self._sizes.items()
        ]

    def transformed_feature_spec(self) -> dict[str, Any]:
        """Returns the parsing spec of the transformed examples."""
        return dict(schema_utils.schema_as_feature_spec(self._schema).feature_spec)

    def vocabulary_size_by_name(self, name: str) -> int:
        """Returns the assumed number of values in a vocabulary."""
        return self._sizes[name]
