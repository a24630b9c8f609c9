"""Says in a run's record what has become of ``--accept-data``."""

from __future__ import annotations

from pathlib import Path

from sluice.record.run_record import RunRecord

_JUDGE = "DataVerdict"


def note_acceptance(record: RunRecord, run_dir: Path, reason: str | None) -> None:
    """Notes whether a reason has let data pass that would not have passed by itself.

    Args:
      record: of the run, as far as it has come; saved if there is a note.
      run_dir: of the run.
      reason: as it was given, None if it was not.
    """
    # ML Metadata's client, which a run with nothing to do does without.
    from runners.local.graph_file import GraphFile

    graph = GraphFile.load(run_dir) if reason else None
    if graph is None:
        return
    asked = any(n.kind == _JUDGE and n.action == "run" for n in graph.nodes)
    judged = any(n.kind == _JUDGE and n.outputs for n in record.nodes)
    gate = next((item for item in record.gates if item["gate"] == "data"), None)
    if not asked:
        text = f"--accept-data had no effect: {_JUDGE} is not in the part asked for"
    elif not judged or gate is None:
        return
    elif gate["override"] is not None:
        text = f"the data was accepted by hand: {gate['override']}"
    else:
        text = "--accept-data was not needed: the data passes by itself"
    if text not in record.notes:
        record.notes.append(text)
        record.save(run_dir)
