"""Entry point of containers on Kubeflow Pipelines: prepares the call of TFX's own.

TFX's entry point is made for Vertex AI. On Kubeflow Pipelines

- input artifacts come without a type, which TFX needs: it is taken from the component's
  declared inputs;
- input artifacts of the same output key have the same name, from which TFX makes their
  ids: the name is set to the URI.

Usage, with the arguments of TFX's ``kubeflow_v2_run_executor``::

    python -m components.kubeflow_entrypoint ...
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Mapping
from typing import Any

_TFX_ENTRYPOINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"


def prepare(executor_input: dict[str, Any], inputs_spec: Mapping[str, Any]) -> None:
    """Completes an executor input in place; see the module.

    Args:
      executor_input: of the task, as Kubeflow Pipelines passes it.
      inputs_spec: the component's declared inputs.
    """
    inputs = executor_input.setdefault("inputs", {})
    declared = inputs_spec.get("artifacts", {})
    for key, listed in inputs.get("artifacts", {}).items():
        for artifact in listed["artifacts"]:
            if not any(artifact.get("type", {}).values()) and key in declared:
                artifact["type"] = declared[key]["artifactType"]
            artifact["name"] = artifact["uri"]


def main(arguments: list[str]) -> None:
    """Runs a task: prepares its input, and calls TFX."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", default="{}")
    own, passed_on = parser.parse_known_args(arguments)
    executor_input = json.loads(own.json_serialized_invocation_args)
    prepare(executor_input, json.loads(own.json_serialized_inputs_spec_args))
    sys.argv = [
        _TFX_ENTRYPOINT,
        "--json_serialized_invocation_args",
        json.dumps(executor_input),
        "--json_serialized_inputs_spec_args",
        own.json_serialized_inputs_spec_args,
        *passed_on,
    ]
    runpy.run_module(_TFX_ENTRYPOINT, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
