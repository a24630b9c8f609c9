"""What the parts of the graph are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config.config import Config
from pipeline.config.feature_set import FeatureSet
from pipeline.graph.fingerprint import stamp
from pipeline.graph.locations import Locations
from sluice.project import own_root


@dataclass(frozen=True)
class GraphContext:
    """A pipeline that is being drawn.

    Attributes:
      config: a validated config.
      locations: where inputs are read and outputs go.
      feature_set: the features and the label.
      accept_data: why a person lets the data pass, whatever the data gate finds.
    """

    config: Config
    locations: Locations
    feature_set: FeatureSet
    accept_data: str | None = None

    @property
    def splits(self) -> list[str]:
        """Those that the config declares, ``train`` first."""
        return self.config.data.split_names

    @property
    def judged_split(self) -> str:
        """The split that the model gate judges on."""
        return "test" if "test" in self.splits else "eval"

    def stamp(
        self, component: Any, packages: Sequence[str], code: Sequence[str] = ()
    ) -> Any:
        """Adds the fingerprint; code is looked up here first, then at the user's."""
        roots = list(dict.fromkeys([own_root(), self.config.root]))
        return stamp(component, packages=packages, code=code, roots=roots)
