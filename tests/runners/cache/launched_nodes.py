"""Nodes as somebody else may write them, launched with the cache."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runners.cache.history import changes, keyed_executions, last_parts
from runners.cache.node_cache import NodeCache

NODES = '''
import apache_beam as beam
from tfx.components.util import udf_utils
from tfx.dsl.component.experimental.annotations import (
    BeamComponentParameter, InputArtifact, OutputArtifact, Parameter,
)
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.types import component_spec, standard_artifacts

import used


@component
def Write(out: OutputArtifact[standard_artifacts.Examples], count: Parameter[int] = 2):
    for number in range(count):
        with open(f"{out.uri}/{number}", "w") as file:
            file.write(used.TEXT)


@component
def Nothing(out: OutputArtifact[standard_artifacts.ModelBlessing]):
    pass


@component(use_beam=True)
def Beam(
    out: OutputArtifact[standard_artifacts.Examples],
    beam_pipeline: BeamComponentParameter[beam.Pipeline] = None,
):
    pass


@component
def Judge(
    model: InputArtifact[standard_artifacts.Model],
    out: OutputArtifact[standard_artifacts.ModelEvaluation],
    baseline_model: InputArtifact[standard_artifacts.Model] = None,
):
    pass


@component
def Refuse():
    raise ValueError("no")


class Executor(base_executor.BaseExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        pass


class Spec(component_spec.ComponentSpec):
    PARAMETERS = {
        "module_file": component_spec.ExecutionParameter(type=str, optional=True),
        "module_path": component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS = {}
    OUTPUTS = {
        "out": component_spec.ChannelParameter(type=standard_artifacts.Model)
    }


class Train(base_component.BaseComponent):
    """Takes a module file as TFX's Trainer does; needs no pip at run time."""

    SPEC_CLASS = Spec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(self, module_file):
        from tfx.types import Channel

        out = Channel(type=standard_artifacts.Model)
        super().__init__(Spec(module_file=module_file, out=out))
        if udf_utils.should_package_user_modules():
            udf_utils.add_user_module_dependency(self, "module_file", "module_path")
'''


class Runs:
    """Launches the nodes of a pipeline in this process, with ``NodeCache``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules = folder / "modules"
        self.root = folder / "root"
        self.count = 0
        self.cache: NodeCache
        self.modules.mkdir()
        (self.modules / "nodes_of_mine.py").write_text(NODES)
        (self.modules / "used.py").write_text("TEXT = 'a'\n")
        (self.modules / "unused.py").write_text("TEXT = 'a'\n")

    @property
    def nodes(self) -> Any:
        return importlib.import_module("nodes_of_mine")

    def connection(self, db: Path | None = None) -> Any:
        from tfx.orchestration import metadata

        path = db or self.folder / "metadata.db"
        return metadata.sqlite_metadata_connection_config(str(path))

    def __call__(
        self,
        *components: Any,
        beam_args: Sequence[str] = (),
        db: Path | None = None,
        enable_cache: bool = True,
        **options: Any,
    ) -> dict[str, str]:
        """Returns ``ran`` or ``cached`` of each node that is not an Importer."""
        from tfx.orchestration import metadata
        from tfx.orchestration.local import runner_utils
        from tfx.orchestration.pipeline import Pipeline
        from tfx.orchestration.portable import (
            cache_utils,
            launcher,
            runtime_parameter_utils,
            tfx_runner,
        )

        from runners.local.node_launcher import NodeLauncher

        self.count += 1
        pipeline = Pipeline(
            pipeline_name="other",
            pipeline_root=str(self.root),
            metadata_connection_config=self.connection(db),
            components=list(components),
            enable_cache=enable_cache,
            beam_pipeline_args=list(beam_args),
        )
        ir = tfx_runner._make_pipeline_proto(pipeline)  # As IrBasedRunner does.
        runtime_parameter_utils.substitute_runtime_parameter(
            ir, {"pipeline-run-id": f"run-{self.count}"}
        )
        deployment = runner_utils.extract_local_deployment_config(ir)
        states: dict[str, str] = {}
        for node in (item.pipeline_node for item in ir.nodes):
            node_id = node.node_info.id
            driver = runner_utils.extract_custom_driver_spec(deployment, node_id)
            self.cache = NodeCache(
                cache_utils,
                roots=[self.modules],
                driver=driver.class_path if driver else None,
                **options,
            )
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(launcher, "cache_utils", self.cache)
                info = NodeLauncher(
                    pipeline_node=node,
                    mlmd_connection=metadata.Metadata(self.connection(db)),
                    pipeline_info=ir.pipeline_info,
                    pipeline_runtime_spec=ir.runtime_spec,
                    executor_spec=runner_utils.extract_executor_spec(
                        deployment, node_id
                    ),
                    custom_driver_spec=driver,
                ).launch()
            if self.cache.key is None:
                continue
            with metadata.Metadata(self.connection(db)) as handle:
                found = handle.store.get_executions_by_id([info.execution_id])
                states[node_id] = {3: "ran", 5: "cached"}[found[0].last_known_state]
        return states

    def told(self, node: str) -> list[str]:
        """Returns what changed between the last two executions of a node."""
        from tfx.orchestration import metadata

        with metadata.Metadata(self.connection()) as handle:
            last = last_parts(handle.store, "other", node)
            assert last is not None
            assert last[2] == f"run-{self.count}"
            (_, now), (_, earlier), *_ = keyed_executions(handle.store, "other", node)
            assert now == last[0]
            return changes(earlier, now)
