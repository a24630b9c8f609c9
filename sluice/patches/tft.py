"""TensorFlow Transform: a trace of a preprocessing function."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any


def trace(preprocessing_fn: Callable[..., Any], feature_spec: dict[str, Any]) -> Any:
    """Returns the schema of what a preprocessing function returns, without data.

    Why: public functions of Transform need data, and a run of Beam.
    Upstream: ``impl_helper``, ``graph_context``, ``annotators`` and
    ``schema_inference`` of tensorflow_transform.
    Checked with: TFT 1.16 and 1.21.
    Without it: no checks of user preprocessing before a run.
    """
    import tensorflow as tf
    from tensorflow_transform import (
        annotators,
        graph_context,
        impl_helper,
        schema_inference,
    )

    with tempfile.TemporaryDirectory() as directory:
        context = graph_context.TFGraphContext(
            module_to_export=tf.Module(), temp_dir=directory
        )
        with annotators.object_tracker_scope(annotators.ObjectTracker()):
            function = impl_helper.get_traced_transform_fn(
                preprocessing_fn,
                impl_helper.get_type_specs_from_feature_specs(feature_spec),
                context,
            ).get_concrete_function()
        return schema_inference.infer_feature_schema(
            function.structured_outputs, function.graph
        )
