"""Reads a verdict and fails with its failed rows; writes nothing."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from sluice.errors import DataError
from sluice.verdict import Check, Verdict, cell

_PLACES = {"overall": "all splits", "serving": "serving examples"}
# Limits that only say that there must be nothing, or something.
_SAYS_NOTHING = ("none", "measured", "present")


class Executor(base_executor.BaseExecutor):
    """Executor of ``DataGate``."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        stop_unless_passed(
            Verdict.load(artifact_utils.get_single_uri(input_dict["verdict"]))
        )


def stop_unless_passed(verdict: Verdict) -> None:
    """Raises DataError with the failed rows unless the verdict has passed."""
    if verdict.passed:
        return
    count = len(verdict.failures)
    raise DataError(
        f"the data gate has not passed: {count} "
        f"{'check' if count == 1 else 'checks'} failed; nothing was trained",
        examples=[_describe(row) for row in verdict.failures],
        hint="correct the data, or the schema if the data is right, and run again; or "
        'let it pass once, with the reason: --accept-data "..."',
    )


def _describe(row: Check) -> str:
    place = _PLACES.get(row.slice, f"split {row.slice}")
    reason = row.why.rstrip(" .") or f"found {cell(row.actual)}"
    if row.limit not in (None, *_SAYS_NOTHING):
        reason += f"; expected {row.limit}"
    policy = f" ({row.policy})" if row.policy else ""
    example = f"; {row.examples[0]}" if row.examples else ""
    return f"{row.check}, {place}: {reason}{policy}{example}"
