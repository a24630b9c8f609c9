"""What the parts of the graph are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config import Config
from pipeline.feature_set import FeatureSet
from pipeline.fingerprint import stamp
from pipeline.places import Places
from sluice.project import own_root


@dataclass(frozen=True)
class Draft:
    """A pipeline that is being drawn.

    Attributes:
      config: a validated config.
      places: where inputs are read and outputs go.
      feature_set: the features and the label.
      accept_data: why a person lets the data pass, whatever the data gate finds.
    """

    config: Config
    places: Places
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
