"""What every mapping of a config is: frozen, and closed to unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the config."""

    # Built at first use, as parts of Config: built alone too, they cost 0.1 s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
