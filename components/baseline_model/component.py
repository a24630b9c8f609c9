"""The ``LatestBlessedModel`` node of cloud services: finds the baseline.

Vertex AI has TFX's own resolvers only, which select a model whose files are
gone; Kubeflow Pipelines has none.
"""

# TFX reads the annotations of a component's function: they must be no strings.

import json

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model

from components.artifacts import ABSENT, SKIPPED
from components.baseline_model.pushed_models import find_baseline


@component
def LatestBlessedModel(
    model: OutputArtifact[Model], serving_dir: Parameter[str], baseline: Parameter[str]
):
    """Publishes the latest pushed model under its own URI; see ``find_baseline``.

    Custom properties: ``ABSENT`` if there is none, since a container's output cannot be
    left out, and ``SKIPPED``, newer models that are missing.
    """
    uri, skipped = find_baseline(serving_dir, baseline)
    if uri is None:
        model.set_string_custom_property(ABSENT, "true")
    else:
        model.uri = uri
    if skipped:
        model.set_string_custom_property(SKIPPED, json.dumps(skipped))
