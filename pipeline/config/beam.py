"""Config section ``beam``: how a local run divides the work on its data."""

from __future__ import annotations

from typing import Literal

from sluice.config_section import Count, Section


class Beam(Section):
    """Processes of the steps of a local run that work on the data.

    These are the ingestion, the statistics, Transform and Evaluator. Their results do
    not depend on it.
    """

    workers: Literal["auto"] | Count = "auto"
    """Processes of each step. auto: one per core; Transform and Evaluator stay in one
    process where the examples are small, which is faster then. With fewer, a step
    needs less memory."""
