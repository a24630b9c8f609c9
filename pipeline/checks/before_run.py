"""The checks before a run, in order; those that need no TensorFlow come first.

``run``, ``submit``, ``validate`` and every command that compiles a pipeline make the
same ones. Which data there is the run finds out when it chooses its spans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from graphlib import CycleError

from pipeline.checks.check_config import validate_config
from pipeline.checks.check_service import check_service
from pipeline.config.config import Config
from pipeline.config.problems import Problems
from pipeline.graph.custom_nodes import (
    make_node,
    node_ids,
    selected_nodes,
    sort_nodes,
)
from pipeline.graph.node_registry import NODES, TRAINER
from pipeline.training.strategy.choice import choose, find_tpu, read_cluster
from sluice.errors import UsageError, unknown_node
from sluice.project import activate


def check_before_run(
    config: Config,
    *,
    asked: Collection[str] = (),
    to_nodes: Collection[str] = (),
    in_service: bool = False,
    on_this_machine: bool = False,
    on_warning: Callable[[str], None] = lambda text: None,
) -> Config:
    """Makes all checks that need no TensorFlow; the user's code is importable then.

    Args:
      config: as it was loaded.
      asked: nodes that somebody has named.
      to_nodes: those that are run, with what is upstream of them; empty for all.
      in_service: whether the service of the section ``cloud`` runs the pipeline.
      on_this_machine: whether the run begins here at once.
      on_warning: called with each possible mistake.

    Returns:
      The config with its defaults.

    Raises:
      UsageError: something is wrong; names all problems of a check.
    """
    activate(config.root)
    valid = validate_config(config)
    check_graph(config)
    check_node_ids(config, (*asked, *to_nodes))
    warnings = [*valid.warnings, *(check_service(config) if in_service else ())]
    if on_this_machine and TRAINER in selected_nodes(config, to_nodes):
        check_strategy(config)
    for warning in warnings:
        on_warning(warning)
    return valid.config


def check_with_tensorflow(config: Config, to_nodes: Collection[str] = ()) -> None:
    """Makes what a valid config names, if the nodes that run include the Trainer.

    Raises:
      ConfigError: Keras, TFMA or the user's code refuses it.
    """
    if TRAINER in selected_nodes(config, to_nodes):
        from pipeline.checks.check_objects import check_objects

        check_objects(config)


def check_graph(config: Config) -> None:
    """Checks that the custom nodes fit into the graph.

    Raises:
      ConfigError: they do not.
    """
    problems = Problems(config.origin)
    known = node_ids(config)
    for name, own in config.nodes.items():
        path = ("nodes", name)
        if name in (node.id for node in NODES):
            problems.add(path, "the pipeline has such a node already")
        for other in (*make_node(name, own).upstream, *own.before):
            if other not in known:
                problems.unknown(path, f"there is no node {other!r}", other, known)
    problems.raise_if_any()
    try:
        sort_nodes(config)
    except CycleError as error:
        cycle = error.args[1]
        first = next(name for name in cycle if name in config.nodes)
        problems.add(("nodes", first), f"the graph has a cycle: {' -> '.join(cycle)}")
    problems.raise_if_any()


def check_node_ids(config: Config, asked: Iterable[str]) -> None:
    """Raises UsageError if a node that somebody asks for is not in the graph."""
    known = node_ids(config)
    for name in asked:
        if name not in known:
            raise unknown_node(name, known, config.name)


def check_strategy(config: Config) -> None:
    """Checks that this machine has what ``train.strategy`` needs, but for GPUs.

    Raises:
      UsageError: it has not, or ``TF_CONFIG`` is damaged.
    """
    cluster = read_cluster()
    if config.train.processes:  # Each gets a TF_CONFIG of its own.
        return
    try:
        choose(config.train.strategy, gpus=0, tpu=find_tpu(), cluster=cluster)
        if config.tune and cluster:
            text = "a search runs on one machine: set train.strategy, such as mirrored"
            raise UsageError(text)
    except UsageError as error:
        problems = Problems(config.origin)
        problems.add_error(("train", "strategy"), error)
        problems.raise_if_any()
