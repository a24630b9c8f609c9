"""Builds the TFX pipeline of a config; the only factory, for every runner.

TFX's cache key has a node's inputs and exec properties. It has neither the code that
user functions run (when given by import path) nor the version of anything. So each
node carries one more exec property, its fingerprint: a JSON object, so that a later run
can say which part of it changed. The node's slice of the config is in its exec
properties already.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format, message
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.orchestration import metadata
from tfx.orchestration.pipeline import Pipeline

from pipeline.config.config import Config
from pipeline.config.resolve_features import feature_set_of
from pipeline.graph.arguments import GraphContext
from pipeline.graph.check_metrics import check_metrics
from pipeline.graph.custom_nodes import nodes_of
from pipeline.graph.locations import Locations, local_locations
from pipeline.graph.node_registry import Node
from schemas.loader import load
from sluice import code_fingerprint
from sluice.errors import ConfigError, did_you_mean
from sluice.node_kinds import kind_of
from sluice.project import own_root
from sluice.workspace import installed_version, locate


def create_pipeline(
    config: Config, locations: Locations | None = None, accept_data: str | None = None
) -> Pipeline:
    """Returns the pipeline of a config, of new component objects at every call.

    Components are never shared between calls because ``Pipeline`` changes them.

    Args:
      config: a validated config.
      locations: where inputs are read and outputs go; None for the local workspace.
      accept_data: why a person lets the data pass this once, whatever is wrong with it.

    Raises:
      ConfigError: the schema is not one, there is no such metric, user code is not
        valid Python, or a node that the config adds cannot be built.
    """
    check_metrics(config)
    locations = locations or local_locations(config, locate(config.root, config.name))
    feature_set = feature_set_of(config, load(config.schema_path))
    context = GraphContext(config, locations, feature_set, accept_data)
    drawn: dict[str, Any] = {}
    for node in nodes_of(config):
        drawn[node.id] = _draw(node, context, drawn)
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=locations.pipeline_root,
        components=list(drawn.values()),
        enable_cache=True,
        beam_pipeline_args=list(locations.beam_args),
        metadata_connection_config=(
            metadata.sqlite_metadata_connection_config(str(locations.metadata_db))
            if locations.metadata_db
            else None
        ),
    )


def _draw(node: Node, context: GraphContext, drawn: dict[str, Any]) -> Any:
    """Returns a node's component, connected to those before it and fingerprinted."""
    channels = {}
    for key, source in node.inputs.items():
        maker, _, output = source.rpartition(".")
        if maker in drawn:
            channels[key] = _output(drawn[maker], output, node, context.config)
    component = _build(node, context, channels)
    if component.id != node.id:
        component = component.with_id(node.id)
    for name in node.after:
        component.add_upstream_node(drawn[name])
    properties = component.exec_properties
    is_system = kind_of(component.type).system
    if not (is_system or code_fingerprint.PROPERTY in properties):
        properties[code_fingerprint.PROPERTY] = _fingerprint(node, context.config)
    return component


def _output(maker: Any, name: str, node: Node, config: Config) -> Any:
    if name in maker.outputs:
        return maker.outputs[name]
    raise ConfigError(
        f"{maker.id} has no output {name!r}.",
        where=_where(node, config),
        expected="one of " + ", ".join(maker.outputs),
        hint=did_you_mean(name, maker.outputs),
    )


def _where(node: Node, config: Config) -> str:
    return f"{config.origin.place(('nodes', node.id))}, nodes.{node.id}"


def _build(node: Node, context: GraphContext, channels: Mapping[str, Any]) -> Any:
    """Returns a node's component.

    Raises:
      ConfigError: the config adds the node, and its component cannot be imported, is
        none, or refuses its arguments.
    """
    arguments = node.arguments(context)
    if node.id not in context.config.nodes:
        return _imported(node.component)(**channels, **arguments)
    where = _where(node, context.config)
    try:
        found = _imported(node.component)
    except Exception as error:
        raise ConfigError(
            f"The component {node.component!r} cannot be imported: "
            f"{type(error).__name__}: {error}",
            where=where,
            hint="correct its module",
        ) from error
    if not (isinstance(found, type) and issubclass(found, BaseComponent)):
        raise ConfigError(
            f"{node.component!r} is not a TFX component.",
            where=where,
            expected="a subclass of TFX's BaseComponent, or a function with "
            "@tfx.dsl.components.component",
            actual=f"a {type(found).__name__}",
        )
    try:
        return found(**channels, **_with_protos(found, arguments))
    except Exception as error:
        first, *more = str(error).splitlines() or [type(error).__name__]
        raise ConfigError(
            f"The node {node.id!r} cannot be built: {first}",
            details=[line.strip() for line in more[:5]],
            where=where,
            hint=f"correct its inputs and parameters: {node.component} takes them as "
            "arguments",
        ) from error


def _imported(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def _with_protos(component: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments with a proto for each mapping where one is declared."""
    declared = component.SPEC_CLASS.PARAMETERS
    found = dict(arguments)
    for key, value in arguments.items():
        kind = declared[key].type if key in declared else None
        if not (isinstance(kind, type) and isinstance(value, Mapping)):
            continue
        if issubclass(kind, message.Message):
            found[key] = json_format.ParseDict(value, kind())
    return found


def _fingerprint(node: Node, config: Config) -> str:
    """Returns the digests of a node's code and the versions of its packages."""
    # Code is looked up here first, then at the user's.
    roots = list(dict.fromkeys([own_root(), config.root]))
    parts = {
        "code": code_fingerprint.digests_of(node.all_code(config), roots),
        "packages": {
            name: installed_version(name) for name in node.all_packages(config)
        },
    }
    return json.dumps(parts, sort_keys=True)
