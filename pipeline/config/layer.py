"""Part of a config, laid over another: a profile, ``--set``, tuned values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.config.problems import KeyPath

# Keys that say what the keys beside them mean.
SELECTORS = ("kind", "class")


@dataclass
class Layer:
    """Part of a config, with ``file:line`` or the ``--set`` of each key path."""

    data: dict[str, Any]
    locations: dict[KeyPath, str]

    def overlay(self, top: Layer) -> None:
        """Merges another layer into this one.

        Mappings are merged; everything else, such as a list or null, is replaced. A
        mapping whose ``kind`` or ``class`` changes is replaced too, since its keys
        belong to the old one, and so is ``model_params`` where ``model`` changes.
        """
        if not _is_same(self.data, top.data, "model"):
            self.data.pop("model_params", None)
        self._overlay(self.data, top, top.data, ())

    def _overlay(
        self, base: dict[str, Any], top: Layer, data: dict[str, Any], path: KeyPath
    ) -> None:
        for key, value in data.items():
            here, old = (*path, key), base.get(key)
            if (
                isinstance(old, dict)
                and isinstance(value, dict)
                and _is_same(old, value, *SELECTORS)
            ):
                self._overlay(old, top, value, here)
                continue
            base[key] = value
            for below, at in top.locations.items():
                if below[: len(here)] == here:
                    self.locations[below] = at


def _is_same(old: dict[str, Any], new: dict[str, Any], *keys: str) -> bool:
    return all(new.get(key, old.get(key)) == old.get(key) for key in keys)
