"""Earlier runs of a pipeline, written into real ML Metadata without running TFX."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd

from runners.metadata.read_metadata import MetadataGraph, read_metadata
from runners.operations.collect_garbage import collect_garbage
from runners.retention.find_garbage import Garbage
from serving.local_store import LocalModelStore
from serving.model_store import Publication
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunOptions
from sluice.workspace import Workspace
from tests.kit.runs import a_record, write_run

SCHEMA_DIGEST = "5c" * 32
MODEL_DIR = "Format-Serving"
Links = Mapping[str, Sequence[int]]


class Past:
    """Writes executions, artifacts with files, run records and versions.

    The pipeline is TFRecordGen -> Trainer -> ModelVerdict -> Pusher.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace = Workspace(root / "workspace" / "digits")
        self.workspace.prepare()
        config = mlmd.ConnectionConfig()
        config.sqlite.filename_uri = str(self.workspace.metadata_db)
        config.sqlite.connection_mode = 3
        self.store = MetadataStore(config)
        self._last: dict[str, dict[str, int]] = {}
        self._types: dict[str, int] = {}
        self._executions = 0
        self._days = itertools.count(1)
        schema = self.workspace.inputs / "schema" / SCHEMA_DIGEST / "schema.pbtxt"
        schema.parent.mkdir(parents=True)
        schema.write_text("schema")
        self.schema = schema

    def run(
        self,
        *,
        data: bool = False,
        train: bool = True,
        blessed: bool = True,
        push: bool = False,
        status: str = "succeeded",
        dry_run: bool = False,
        trial: bool = False,
    ) -> str:
        """Writes a run in which some nodes ran and the others were cached."""
        run_id = f"202601{next(self._days):02}T000000Z-aaaa"
        data = data or "TFRecordGen" not in self._last
        train = train or data
        examples = self._node(
            run_id,
            "TFRecordGen",
            {"examples": "Examples"},
            cached=not data,
            properties={
                "input_base": "/data/digits",
                "input_fingerprint": "sha256:da7a",
                "span": 0,
                "secret": "hunter2",
                "fingerprint": json.dumps({"code": {"components.ingest": "c0de1"}}),
            },
        )
        model = self._node(
            run_id,
            "Trainer",
            {"model": "Model", "model_run": "ModelRun"},
            {"examples": [examples["examples"]]},
            cached=not train,
            properties={
                "schema_file": str(self.schema),
                "run_fn": "pipeline.training.run_fn.run_fn",
                "fingerprint": json.dumps(
                    {"code": {"pipeline.training.run_fn": run_id}}
                ),
            },
        )["model"]
        blessing = self._node(
            run_id,
            "ModelVerdict",
            {"blessing": "ModelBlessing"},
            {"model": [model]},
            cached=not train,
            about={"blessed": int(blessed), "current_model_id": model},
        )["blessing"]
        if push:
            publication = self.push(run_id, model)
            about = {
                "pushed": 1,
                "digest": publication.digest,
                "model_uri": self.store.get_artifacts_by_id([model])[0].uri,
                "pushed_version": str(publication.version),
                "pushed_destination": publication.uri,
            }
        inputs = {"model": [model], "model_blessing": [blessing]}
        self._node(
            run_id,
            "Pusher",
            {"pushed_model": "PushedModel"},
            inputs,
            cached=not (push or train),
            properties={
                "push_destination": json.dumps(
                    {"filesystem": {"base_directory": str(self.workspace.serving)}}
                )
            },
            about=about if push else {"pushed": 0},
        )
        to_nodes = ["ModelVerdict"] if trial else []
        self.record(run_id, status, dry_run=dry_run, trial=trial, to_nodes=to_nodes)
        return run_id

    def collect(self, keep: int = 1, dry_run: bool = False) -> Garbage:
        """Collects what neither the newest runs nor the served versions need."""
        serving_dirs = [self.workspace.serving]
        return collect_garbage(self.workspace, serving_dirs, keep=keep, dry_run=dry_run)

    def push(self, run_id: str, model: int) -> Publication:
        """Publishes a model as a version."""
        (artifact,) = self.store.get_artifacts_by_id([model])
        facts = {"pipeline_run_id": run_id, "model_uri": artifact.uri}
        model_dir = Path(artifact.uri) / MODEL_DIR
        return LocalModelStore(self.workspace.serving).publish(model_dir, facts=facts)

    def record(self, run_id: str, status: str, **options: Any) -> Path:
        """Writes the folder of a run."""
        nodes = [NodeRecord("Trainer", "Trainer", "ran")]
        record = a_record(run_id, status=status, nodes=nodes, gates=[], pushes=[])
        record.options = RunOptions(**options)
        logs = {"Trainer": f"log of {run_id}"}
        return write_run(self.workspace.runs, record, logs=logs)

    def execution(
        self,
        run_id: str,
        node: str,
        *,
        inputs: Links | None = None,
        reused: Mapping[str, int] | None = None,
        outputs: Sequence[tuple[str, mlmd.Artifact]] = (),
        state: int = mlmd.Execution.COMPLETE,
        properties: Mapping[str, Any] | None = None,
    ) -> int:
        """Writes an execution, with its outputs if it has any, and returns its id."""
        kind = mlmd.ExecutionType(name=f"components.{node}")
        execution = mlmd.Execution(
            type_id=self._type(kind, self.store.put_execution_type),
            last_known_state=state,
        )
        _set(execution.custom_properties, properties or {})
        execution_id, artifact_ids, _ = self.store.put_execution(
            execution,
            [(item, _event(key, mlmd.Event.OUTPUT)) for key, item in outputs],
            [self._context(*item) for item in _contexts(run_id, node)],
            reuse_context_if_already_exist=True,
        )
        self._last[node] = {
            key: artifact_id
            for (key, _), artifact_id in zip(outputs, artifact_ids, strict=True)
        } or self._last.get(node, {})
        events = [
            _event(key, mlmd.Event.INPUT, execution_id, artifact_id)
            for key, items in (inputs or {}).items()
            for artifact_id in items
        ]
        events += [
            _event(key, mlmd.Event.OUTPUT, execution_id, artifact_id)
            for key, artifact_id in (reused or {}).items()
        ]
        if events:
            self.store.put_events(events)
        self._executions = execution_id
        return execution_id

    def output(
        self,
        execution_id: int,
        key: str,
        kind: str,
        uri: str | Path,
        about: Mapping[str, Any] | None = None,
    ) -> int:
        """Writes one more output, without files, and returns its id."""
        (artifact_id,) = self.store.put_artifacts([self._artifact(kind, uri, about)])
        event = _event(key, mlmd.Event.OUTPUT, execution_id, artifact_id)
        self.store.put_events([event])
        return artifact_id

    def graph(self) -> MetadataGraph:
        return read_metadata(self.workspace.metadata_db)

    def uri(self, node: str, key: str, execution_id: int) -> Path:
        return self.workspace.artifacts / node / key / str(execution_id)

    def made_by(self, run_id: str, name: str) -> Path:
        """Returns where an output is that a run made, not one that it reused."""
        graph = self.graph()
        (execution,) = (
            item
            for item in graph.executions_of([run_id])
            if item.node == name.partition(".")[0]
        )
        assert execution.state == "complete"
        (artifact_id,) = execution.outputs[name.partition(".")[2]]
        return Path(graph.artifacts[artifact_id].uri)

    def _node(
        self,
        run_id: str,
        node: str,
        outputs: Mapping[str, str],
        inputs: Links | None = None,
        *,
        cached: bool = False,
        properties: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> dict[str, int]:
        if cached:
            self.execution(
                run_id,
                node,
                inputs=inputs,
                reused=self._last[node],
                state=mlmd.Execution.CACHED,
                properties=properties,
            )
            return self._last[node]
        artifacts = []
        for key, kind in outputs.items():
            uri = self.uri(node, key, self._executions + 1)
            folder = uri / MODEL_DIR if kind == "Model" else uri
            (folder / "variables").mkdir(parents=True)
            (folder / "saved_model.pb").write_text(f"{key} of {run_id}")
            artifacts.append((key, self._artifact(kind, uri, about)))
        self.execution(
            run_id, node, inputs=inputs, outputs=artifacts, properties=properties
        )
        return self._last[node]

    def _artifact(
        self, kind: str, uri: str | Path, about: Mapping[str, Any] | None
    ) -> mlmd.Artifact:
        type_id = self._type(mlmd.ArtifactType(name=kind), self.store.put_artifact_type)
        artifact = mlmd.Artifact(
            type_id=type_id, uri=str(uri), state=mlmd.Artifact.LIVE
        )
        _set(artifact.custom_properties, about or {})
        return artifact

    def _context(self, kind: str, name: str) -> mlmd.Context:
        type_id = self._type(mlmd.ContextType(name=kind), self.store.put_context_type)
        return mlmd.Context(type_id=type_id, name=name)

    def _type(self, kind: Any, put: Callable[[Any], int]) -> int:
        if kind.name not in self._types:
            self._types[kind.name] = put(kind)
        return self._types[kind.name]


def _event(
    key: str, kind: Any, execution_id: int | None = None, artifact_id: int | None = None
) -> mlmd.Event:
    event = mlmd.Event(execution_id=execution_id, artifact_id=artifact_id, type=kind)
    event.path.steps.add().key = key
    event.path.steps.add().index = 0
    return event


def _contexts(run_id: str, node: str) -> list[tuple[str, str]]:
    return [
        ("pipeline", "digits"),
        ("pipeline_run", run_id),
        ("node", f"digits.{node}"),
    ]


def _set(target: Any, values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        kind = "int_value" if isinstance(value, int) else "string_value"
        setattr(target[key], kind, value)
