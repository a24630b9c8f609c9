"""Executor of ``Evaluator``: reuses known metrics of the baseline.

TFMA evaluates candidate and baseline together, so each new candidate costs another
evaluation of the baseline. Here the baseline's metrics are copied from an earlier
evaluation of this node on the same data with the same settings, or from this one if the
candidate is its own baseline. The output is the same. Where that is not possible, TFX's
executor evaluates both; see ``can_add_baseline``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfx.components.evaluator import executor
from tfx.types import artifact_utils
from tfx.types import standard_component_specs as specs
from tfx.utils import path_utils

from components.artifacts import without_absent
from components.evaluator.add_baseline import (
    add_baseline,
    can_add_baseline,
    read_metrics,
)
from components.evaluator.evaluation_digests import (
    BASELINE,
    CANDIDATE,
    digest_inputs,
    find_reusable,
)
from sluice.storage.storage import is_remote


class Executor(executor.Executor):
    """Executor of ``Evaluator``.

    A subclass of TFX's: Vertex AI gives models their resource names only for those.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        input_dict = without_absent(input_dict)
        uri = artifact_utils.get_single_uri(output_dict[specs.EVALUATION_KEY])
        evaluated = None
        if can_add_baseline(exec_properties) and not is_remote(uri):
            evaluated = digest_inputs(input_dict, exec_properties)
        if evaluated is None:
            super().Do(input_dict, output_dict, exec_properties)
            return
        folder, known = Path(uri), None
        if evaluated.models.get(BASELINE) == evaluated.models[CANDIDATE]:
            known = folder, CANDIDATE
        elif BASELINE in evaluated.models:
            known = find_reusable(folder, evaluated)
        if known is None:
            super().Do(input_dict, output_dict, exec_properties)
        else:
            alone = {**input_dict}
            (baseline,) = alone.pop(specs.BASELINE_MODEL_KEY)
            super().Do(alone, output_dict, exec_properties)
            old_layout = path_utils.is_old_model_artifact(baseline)
            model_dir = path_utils.serving_model_path(baseline.uri, old_layout)
            add_baseline(folder, read_metrics(*known), model_dir)
        evaluated.save(folder, known[0] if known else None)
