"""Config, spans and places of a run, and the record of what it reads."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.exec_properties import SPANS
from components.tfrecord_gen.spans.span_choice import SpanChoice
from components.tfrecord_gen.spans.window import Window, read_spans
from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from pipeline.config.validate_secrets import require_secrets
from pipeline.graph.choose_spans import choose_spans
from pipeline.graph.custom_nodes import selected_nodes
from pipeline.graph.node_registry import INGESTION, SERVING_INGESTION
from runners.cache.run_inputs import RunInputs, differences, run_inputs
from sluice.errors import SluiceError, UsageError
from sluice.project import activate
from sluice.record.events import (
    GraphCompiled,
    InputsRead,
    NodeFinished,
    SpansChosen,
)
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.splits import SERVING
from sluice.storage import atomic
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

_INPUTS_FILE = "inputs.json"
# The node that reads each input, as the record names it.
_INGESTED_BY = {"data": INGESTION, SERVING: SERVING_INGESTION}


@dataclass(frozen=True)
class PreparedRun:
    """Validated config of a run, with its spans and the places that it writes to."""

    config: Config
    choice: SpanChoice
    workspace: Workspace
    serving_dir: str

    def read_inputs(self) -> RunInputs:
        """Returns digests of config, schema, code, data and packages as they are now.

        Those of files come from the stat cache where it has them.
        """
        digests = FileDigests(self.workspace.digests_file)
        root, serving_dir = self.workspace.root, self.serving_dir
        found = run_inputs(self.config, root, serving_dir, self.choice, digests)
        digests.save()
        return found


def load_prepared_run(workspace: Workspace, recorder: Recorder) -> PreparedRun:
    """Returns the stored config and spans of a run; makes its code importable.

    Chooses the spans if the run was stopped before it had stored them.

    Raises:
      FileNotFoundError: `sluice gc` has deleted its config.
      UsageError: an environment variable that its config refers to is not set.
    """
    run_dir = recorder.run_dir
    config = read_stored_config(run_dir / "config.json")
    require_secrets(config)
    activate(config.root)
    stored = SpanChoice.load(run_dir)
    choice = stored.restat() if stored else choose_spans(config)
    return PreparedRun(config, choice, workspace, recorder.run_started.destination)


def record_inputs(
    recorder: Recorder, prepared: PreparedRun, inputs: RunInputs | None = None
) -> None:
    """Stores the digests of a run's inputs, and records them with its spans.

    Raises:
      UsageError: an input is missing or cannot be read.
    """
    inputs = inputs or prepared.read_inputs()
    begun = recorder.run_started
    selected = selected_nodes(prepared.config, begun.from_nodes, begun.to_nodes)
    spans = {
        name: spans
        for name, spans in prepared.choice.to_dict().items()
        if _INGESTED_BY[name] in selected
    }
    if spans:
        recorder.apply(SpansChosen(spans=spans))
    recorder.apply(InputsRead(digests=inputs.summary(), packages=inputs.packages))
    # Last: a run that has this file is not recorded again when it is resumed.
    atomic.write_json(recorder.run_dir / _INPUTS_FILE, inputs.to_dict())


def stored_inputs(run_dir: Path) -> dict[str, Any] | None:
    """Returns what ``record_inputs`` stored; None where the run ended before that."""
    try:
        return json.loads((run_dir / _INPUTS_FILE).read_text())
    except FileNotFoundError:
        return None


def require_unchanged_inputs(
    recorder: Recorder, now: RunInputs, run_again: str
) -> None:
    """Raises if a run cannot continue because its inputs are not those it began with.

    A run that was stopped before its first node may have stored none.

    Raises:
      UsageError: schema, code, data or packages have changed, or are not known.
    """
    run_dir = recorder.run_dir
    before = stored_inputs(run_dir)
    if before is None:
        if not recorder.record.nodes:
            return
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: its inputs are not known",
            where=run_dir / _INPUTS_FILE,
            hint=run_again,
        )
    parts = ("schema", "code", "data", "packages")
    if changed := differences(before, now.to_dict(), parts):
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: its inputs have changed since",
            where=run_dir,
            examples=changed,
            hint=run_again,
        )


def changes_since_base(recorder: Recorder, workspace: Workspace) -> list[str]:
    """Returns a note on each input that has changed since the run that is reused."""
    graph = recorder.graph
    if graph is None or graph.base_run_id is None:
        return []
    before = stored_inputs(workspace.run_dir(graph.base_run_id))
    now = stored_inputs(recorder.run_dir)
    if before is None or now is None:
        return []
    lines = differences(before, now, ("schema", "code", "data"))
    if any(node.judges_data and node.action == "reuse" for node in graph.nodes):
        lines += [
            f"config: {key}, by which the data was judged"
            for key in ("examples", "validate")
            if before["config"].get(key) != now["config"].get(key)
        ]
    return [f"differs from run {graph.base_run_id}, reused: {line}" for line in lines]


def record_late_spans(recorder: Recorder) -> None:
    """Records spans that were not known when the run began, as its examples have them.

    They are those of an earlier run whose examples this one reuses, or were chosen by
    a driver because the plan had none.
    """
    inputs_of = {node: name for name, node in _INGESTED_BY.items()}
    spans = dict(recorder.record.spans)
    for event in Journal(recorder.run_dir).events():
        if not isinstance(event, NodeFinished) or event.node not in inputs_of:
            continue
        for artifact in event.outputs.get("examples", ()):
            if text := artifact.properties.get(SPANS):
                found = [span.to_dict() for span in read_spans(text) or ()]
                spans.setdefault(inputs_of[event.node], found)
    if spans != recorder.record.spans:
        recorder.apply(SpansChosen(spans=spans))


def ingested_data(recorder: Recorder, prepared: PreparedRun) -> Window:
    """Returns the data of a run, or of the earlier run whose examples it reuses."""
    choice, graph = prepared.choice, recorder.graph
    # A record that is damaged or deleted by now only costs precision.
    with suppress(OSError, SluiceError):
        while graph and graph.base_run_id and _is_ingestion_reused(graph):
            run_dir = prepared.workspace.run_dir(graph.base_run_id)
            choice = SpanChoice.load(run_dir) or choice
            graph = Recorder(run_dir).graph
    return choice.data


def _is_ingestion_reused(graph: GraphCompiled) -> bool:
    return any(node.id == INGESTION and node.action == "reuse" for node in graph.nodes)
