"""Executor of ``DataGate``: raises an error with the failed rows of the verdict."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from sluice.errors import GateError
from sluice.record.verdict import Check, Verdict, cell
from sluice.splits import SERVING

_PLACES = {"overall": "all splits", SERVING: "serving examples"}
# Limits without information beyond the check's name.
_TRIVIAL_LIMITS = ("none", "measured", "present")


class Executor(base_executor.BaseExecutor):
    """Executor of ``DataGate``."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        verdict = Verdict.load(artifact_utils.get_single_uri(input_dict["verdict"]))
        pipeline = self._context.pipeline_info if self._context else None
        stop_unless_passed(verdict, pipeline.id if pipeline else "NAME")


def stop_unless_passed(verdict: Verdict, pipeline: str) -> None:
    """Raises GateError with the failed rows unless the verdict has passed.

    Args:
      verdict: on the data.
      pipeline: its name, for the hint.
    """
    if verdict.passed:
        return
    count = len(verdict.failures)
    remedies = dict.fromkeys((row.remedy, row.command) for row in verdict.failures)
    ways_out = [
        f"{remedy}: `sluice {command} {pipeline}`" if command else remedy
        for remedy, command in remedies
        if remedy
    ]
    raise GateError(
        f"the data gate has not passed: {count} "
        f"{'check' if count == 1 else 'checks'} failed; nothing was trained",
        examples=[_describe(row) for row in verdict.failures],
        hint=f"{'; '.join([*ways_out, 'then run again'])}. "
        'Or override the gate once, with a reason: --accept-data "..."',
    )


def _describe(row: Check) -> str:
    place = _PLACES.get(row.slice, f"split {row.slice}")
    reason = row.why.rstrip(" .") or f"found {cell(row.actual)}"
    if row.limit_text not in (None, *_TRIVIAL_LIMITS):
        reason += f"; expected {row.limit_text}"
    policy = f" ({row.policy})" if row.policy else ""
    example = f"; {row.examples[0]}" if row.examples else ""
    return f"{row.check}, {place}: {reason}{policy}{example}"
