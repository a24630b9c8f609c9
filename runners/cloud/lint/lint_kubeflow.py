"""What Kubeflow Pipelines lacks, in a compiled pipeline.

Read in the sources of kubeflow/pipelines at 7b70c7b9 (August 2026), not tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from runners.cloud.lint.finding import Finding, error, warning
from runners.cloud.spec import Container, CustomJob, Importer, Resolver, Spec, Task

# MaxParameterBytes (backend/src/common/util/consts.go): all of a run's, as JSON.
MAX_PARAMETERS_BYTES = 10_000
# Kubernetes stores a run as one object, of at most 1.5 MB (etcd's request limit).
MAX_SPEC_BYTES = 1_000_000
# Argo's names of tasks.
_NAME = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
# Its executor selects the spans where no driver did.
_TFRECORD_GEN = "components.tfrecord_gen.executor.Executor"
_TFX_ENTRY_POINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"


def lint_kubeflow(spec: Spec) -> list[Finding]:
    """Returns what Kubeflow Pipelines would refuse or silently leave out."""
    found = [finding for task in spec.tasks for finding in _lint_task(task)]
    defaults = {name: item.default for name, item in spec.parameters.items()}
    parameters = json.dumps({**defaults, **spec.parameter_values})
    if (size := len(parameters.encode())) > MAX_PARAMETERS_BYTES:
        found.append(
            error(
                "runtime parameters",
                f"they have {size:,} bytes; Kubeflow takes {MAX_PARAMETERS_BYTES:,}",
                "shorten model_params, train, examples.window or the reason of "
                "--accept-data, or set MAX_PARAMETER_BYTES of the installation's API "
                "server",
            )
        )
    if (size := len(json.dumps(dict(spec.job)).encode())) > MAX_SPEC_BYTES:
        found.append(
            warning(
                "the compiled pipeline",
                f"it has {size:,} bytes, and Kubernetes stores objects of about "
                f"{MAX_SPEC_BYTES:,}",
                "give large parameters as files at gs://",
            )
        )
    return found


def _lint_task(task: Task) -> Iterator[Finding]:
    executor = task.executor
    if not re.fullmatch(_NAME, task.id):
        what = f"Kubeflow takes no task named {task.id!r}"
        yield error(task.id, what, "rename the node: letters, digits and hyphens")
    if isinstance(executor, Resolver):
        yield error(
            task.id,
            "Kubeflow cannot look up artifacts of earlier runs",
            "leave the resolver out, and give what it finds as a parameter",
        )
    if isinstance(executor, CustomJob):
        what = "Kubeflow has no custom jobs; they are Vertex AI's"
        yield error(task.id, what, "leave machine_type, workers and tpu out")
    if isinstance(executor, Importer) and task.condition:
        what = "Kubeflow has no importer with a condition"
        yield error(task.id, what, "move the importer out of the condition")
    if not isinstance(executor, Container):
        return
    if executor.driver is not None and _TFRECORD_GEN not in executor.args:
        yield error(
            task.id,
            "Kubeflow does not run TFX's driver, so spans and patterns stay unresolved",
            "ingest by TFRecordGen, which resolves them itself",
        )
    if _TFX_ENTRY_POINT in executor.command and task.artifacts:
        yield error(
            task.id,
            "Kubeflow does not tell containers the types of their inputs, which TFX's "
            "entry point needs",
            "compile it by sluice compile --engine kubeflow",
        )
