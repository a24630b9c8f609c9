"""Retry policy for transient failures of nodes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sluice.config_section import Number, Section, Text

MAX_RETRIES = 20
_LONGEST_WAIT_S = 300.0


class Retries(Section):
    """Further attempts after transient failures.

    Such as a service that does not answer or a broken connection; locally never a gate,
    bad data or a bug. A cloud service repeats after every failure, but not gates.
    """

    default: Annotated[int, Field(strict=True, ge=0, le=MAX_RETRIES)] = Field(
        default=0, description="Further attempts of every node that is not named."
    )
    nodes: dict[Text, Annotated[int, Field(strict=True, ge=0, le=MAX_RETRIES)]] = Field(
        default={}, description="Further attempts by node, such as `{Trainer: 2}`."
    )
    backoff_s: Annotated[Number, Field(ge=0)] = Field(
        default=5.0,
        description="Seconds before the second attempt; doubled with each further, "
        "up to five minutes.",
    )

    def of(self, node_id: str) -> int:
        """Returns how many further attempts a node has."""
        return self.nodes.get(node_id, self.default)

    def wait_s(self, attempt: int) -> float:
        """Returns the wait in seconds after attempt number ``attempt`` (from 1)."""
        return min(self.backoff_s * 2 ** (attempt - 1), _LONGEST_WAIT_S)
