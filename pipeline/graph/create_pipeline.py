"""Creates the TFX pipeline of a config, for every runner.

TFX's cache key covers the inputs and exec properties of a node, but not the code of
user functions (given by import path) nor the versions of packages. Each node therefore
gets one more exec property, its fingerprint: a JSON object with a digest per module, a
version per package, and a digest per file that a property names, so that
``sluice explain`` can say which of them changed.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from google.protobuf import json_format, message
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.experimental.conditionals import conditional
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline

from pipeline.config.config import Config
from pipeline.graph.arguments import GraphContext
from pipeline.graph.custom_nodes import named_files, sort_nodes
from pipeline.graph.locations import Locations, local_locations
from pipeline.graph.node_registry import Node
from sluice import code_fingerprint
from sluice.errors import ConfigError
from sluice.node_kinds import kind_of
from sluice.project import own_root
from sluice.storage import digest
from sluice.workspace import installed_version, locate


def create_pipeline(
    config: Config,
    locations: Locations | None = None,
    accept_data: str | None = None,
    *,
    trial: bool = False,
    more: Callable[[Mapping[str, Any]], list[Any]] = lambda components: [],
) -> Pipeline:
    """Returns the TFX pipeline of a config.

    Each call creates new components, because ``Pipeline`` changes those it is given.

    Args:
      config: a validated config.
      locations: where inputs are read and outputs go; None for the local workspace.
      accept_data: the reason of ``--accept-data``, which overrides the data gate once.
      trial: whether the model is judged and not blessed.
      more: returns further components, given those of the config by node id.

    Raises:
      ConfigError: the schema is invalid, user code is not valid Python, or the
        component of a custom node cannot be created.
    """
    locations = locations or local_locations(config, locate(config.root, config.name))
    context = GraphContext(config, locations, accept_data, trial)
    components: dict[str, Any] = {}
    for node in sort_nodes(config):
        components[node.id] = _create_component(node, context, components)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=locations.pipeline_root,
        components=[*components.values(), *more(components)],
        enable_cache=True,
        beam_pipeline_args=list(locations.beam_args),
        metadata_connection_config=(
            metadata.sqlite_metadata_connection_config(str(locations.metadata_db))
            if locations.metadata_db
            else None
        ),
    )


def _create_component(
    node: Node, context: GraphContext, components: Mapping[str, Any]
) -> Any:
    """Returns the component of a node, with its inputs, id and fingerprint.

    Args:
      node: the node.
      context: what its arguments are made from.
      components: those of the nodes before it, by node id.

    Raises:
      ConfigError: that of a custom node cannot be imported, is not a component, or
        rejects its arguments.
    """
    config = context.config
    try:
        with _condition(node, components):
            component = _make(node, context, components).with_id(node.id)
    except Exception as error:
        if node.id not in config.nodes:
            raise
        raise ConfigError(
            f"{node.component}, the component of {node.id!r}, cannot be created: "
            f"{type(error).__name__}: {error}",
            where=f"{config.origin.location(('nodes', node.id))}, nodes.{node.id}",
        ) from error
    for name in node.after:
        component.add_upstream_node(components[name])
    properties = component.exec_properties
    is_system = kind_of(component.type).system
    if not (is_system or code_fingerprint.PROPERTY in properties):
        found = _fingerprint(node, context, properties)
        properties[code_fingerprint.PROPERTY] = found
    return component


def _condition(node: Node, components: Mapping[str, Any]) -> AbstractContextManager:
    """Returns the context in which a node's component is made."""
    producer, _, rest = node.condition.partition(".")
    if producer not in components:
        return nullcontext()
    output, _, key = rest.partition(".")
    found = components[producer].outputs[output].future()[0]
    return conditional.Cond(found.custom_property(key) == 1)


def _make(node: Node, context: GraphContext, components: Mapping[str, Any]) -> Any:
    in_service = context.locations.is_service and node.in_service
    module, _, name = (in_service or node.component).partition(":")
    component = getattr(importlib.import_module(module), name)
    inputs, arguments = {}, node.arguments(context)
    for key, source in node.inputs.items():
        producer, _, output = source.partition(".")
        if producer in components:
            outputs = components[producer].outputs
            if output not in outputs:
                known = ", ".join(outputs)
                raise LookupError(f"{producer} has no output {output!r}, only {known}")
            inputs[key] = outputs[output]
    if node.id in context.config.nodes:
        if not (isinstance(component, type) and issubclass(component, BaseComponent)):
            raise TypeError(f"it is a {type(component).__name__}, not a TFX component")
        arguments = _with_protos(component, arguments)
    return component(**inputs, **arguments)


def _with_protos(component: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Converts mappings to protos where the component wants one.

    TFX would do it too, but ignores unknown fields.
    """
    declared, found = component.SPEC_CLASS.PARAMETERS, dict(arguments)
    for key, value in arguments.items():
        kind: Any = declared[key].type if key in declared else None
        is_proto = isinstance(kind, type) and issubclass(kind, message.Message)
        if is_proto and isinstance(value, Mapping):
            found[key] = json_format.ParseDict(value, kind())
    return found


def _fingerprint(
    node: Node, context: GraphContext, properties: Mapping[str, Any]
) -> str:
    """Returns the digests of a node's code and files, and its packages' versions.

    Files are those that its exec ``properties`` name.
    """
    config = context.config
    # Code is looked up here first, then at the user's.
    roots = list(dict.fromkeys([own_root(), config.root]))
    code = code_fingerprint.digests_of(node.modules(config), roots)
    files = {}
    for path in named_files(config, properties):
        if path.suffix == ".py":
            code |= code_fingerprint.of_file(path, roots)
        # A copy has a digest in its path.
        elif not path.is_relative_to(context.locations.inputs_dir or path / "none"):
            files[os.path.relpath(path, config.root)] = digest.of_file(path)
    parts = {
        "code": code,
        "files": files,
        "packages": {
            name: installed_version(name) for name in code_fingerprint.PACKAGES
        },
    }
    return json.dumps(parts, sort_keys=True)
