"""Lints a TFX pipeline before it is compiled: what TFX's compiler refuses or drops.

The compiler stops at the first node that it cannot compile, with words of its own.
Here each node is compiled by itself, so that all of them are found at once. Called in
the process that compiles, since it imports TFX.
"""

from __future__ import annotations

import re
from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.dsl.placeholder.placeholder import Placeholder
from tfx.orchestration.kubeflow.v2.parameter_utils import ParameterContext
from tfx.orchestration.kubeflow.v2.step_builder import StepBuilder
from tfx.utils import import_utils

from runners.cloud.lint.finding import Finding, error, warning

# What TFX's compiler says, as pattern; what that means, with the pattern's groups; fix.
_REFUSALS = (
    (
        r"component type .*InfraValidator",
        "TFX has no InfraValidator for a service",
        "leave the node out",
    ),
    (
        r"Invalid custom artifact type name: (\S+)",
        "the service takes no artifact type named {0!r}",
        "name it by its import path, with a package of 3 to 21 characters: "
        "TYPE_NAME = 'package.ClassName'",
    ),
    (
        r"Unexpected resolver policy .*?'([\w.]+)'>",
        "the service has no lookup like {0}",
        "take LatestArtifactStrategy or LatestBlessedModelStrategy",
    ),
    (
        r"Only desired_num_of_artifacts=1",
        "a lookup of the service finds one artifact, the latest",
        "leave desired_num_of_artifacts out",
    ),
    (
        r"unsupported placeholder operator (\w+)|Only supports (?:accessing|predicate)"
        r"|split uri is unsupported",
        "the service cannot evaluate its condition ({0})",
        "compare properties, custom properties or URIs of artifacts with constants",
    ),
    (
        r"Invalid placeholder for exec prop (\w+)",
        "the parameter {0!r} is computed from another node's output",
        "make that output an input of the node, and read it there",
    ),
    (
        r"Executor spec",
        "its executor is neither a class nor a container",
        "give the component an executor class",
    ),
)
_JSON = (dict, list, tuple)


def lint_pipeline(pipeline: Any) -> list[Finding]:
    """Returns the findings about the nodes of a TFX pipeline.

    Args:
      pipeline: of TFX; compiling its nodes does not change it.
    """
    pipeline.finalize()
    found = []
    for component in pipeline.components:
        found += [*_lint_types(component), *_lint_properties(component)]
        found += _lint_driver(component)
        if refusal := _compile(component, pipeline):
            found.append(refusal)
    return list(dict.fromkeys(found))


def _compile(component: Any, pipeline: Any) -> Finding | None:
    """Returns why TFX's compiler refuses a node, None if it compiles it."""
    try:
        with ParameterContext():
            StepBuilder(
                node=component,
                deployment_config=pipeline_spec_pb2.PipelineDeploymentConfig(),
                component_defs={},
                dsl_context_reg=pipeline.dsl_context_registry,
                dynamic_exec_properties={},
                image="image",
                pipeline_info=pipeline.pipeline_info,
                use_pipeline_spec_2_1=True,
            ).build()
    except Exception as refused:
        causes = f"{refused} {refused.__cause__ or ''}"
        for pattern, what, fix in _REFUSALS:
            if match := re.search(pattern, causes):
                names = [name or match[0] for name in match.groups()]
                return error(component.id, what.format(*names), fix)
        what = f"TFX cannot compile it: {type(refused).__name__}: {refused}"
        return error(component.id, what, "leave the node out, or change its component")
    return None


def _lint_types(component: Any) -> list[Finding]:
    """Types of its own that a container could not import by their names."""
    found = []
    for key, channel in {**component.inputs, **component.outputs}.items():
        name = channel.type.TYPE_NAME
        if "." not in name:  # One of TFX, or refused by its compiler.
            continue
        try:
            imported = import_utils.import_class_by_path(name)
        except (ImportError, AttributeError, ValueError):
            imported = None
        if imported is not channel.type:
            path = f"{channel.type.__module__}.{channel.type.__name__}"
            found.append(
                error(
                    f"{component.id}, {key!r}",
                    f"the artifact type {name!r} is no import path, by which a "
                    "container finds its class",
                    f"name it as it can be imported; its class is {path}",
                )
            )
    return found


def _lint_properties(component: Any) -> list[Finding]:
    """Parameters that reach an executor otherwise than on this machine."""
    found = []
    own = not type(component).__module__.startswith("tfx.")
    for key, value in component.exec_properties.items():
        where = f"{component.id}, parameter {key!r}"
        if isinstance(value, Placeholder):
            found.append(
                error(
                    where,
                    "TFX 1.16 and 1.21 compile a value of another node's output to a "
                    "task that does not exist",
                    "make that output an input of the node, and read it there",
                )
            )
        elif own and isinstance(value, _JSON):
            what = f"a {type(value).__name__} reaches its executor as JSON text"
            fix = "declare it as str, and parse it by json.loads"
            found.append(error(where, what, fix))
        elif own and isinstance(value, bool):
            what = "True and False reach its executor as 1 and 0"
            found.append(warning(where, what, "declare it as int"))
    return found


def _lint_driver(component: Any) -> list[Finding]:
    """A driver of its own, which the service does not run."""
    driver = getattr(type(component), "DRIVER_CLASS", BaseDriver)
    # Where no driver has run, the executors of ours do the same.
    if driver.__module__.startswith(("tfx.", "components.")):
        return []
    what = f"the service does not run its driver, {driver.__module__}.{driver.__name__}"
    return [error(component.id, what, "move what it does into the executor")]
