"""The id of the run that an executor is part of."""

from __future__ import annotations

from typing import Any


def run_id_of(context: Any) -> str:
    """Returns the run's id; on Vertex AI the job's; "" where it is not known.

    There TFX's entry point gives no id to the context, only a folder
    ``<root>/<project>/<job>/<task>/.temp/<unique id>/``.

    Args:
      context: of a TFX executor; None outside of TFX.
    """
    if context is None:
        return ""
    if context.pipeline_run_id:
        return context.pipeline_run_id
    try:
        *_, job, _, temporary, _ = context.get_tmp_path().rstrip("/").split("/")
    except (RuntimeError, ValueError):  # It has no folder, or another one.
        return ""
    return job if temporary == ".temp" else ""
