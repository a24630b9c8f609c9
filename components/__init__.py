"""Custom TFX components: spec, executor, and the pure logic beside them.

The artifact types resolve as ``components.DataVerdict`` and so on, because the cloud
compiler imports a type by its name, which must be ``package.Class``. They are loaded
lazily, so importing this package does not import TFX.
"""

from __future__ import annotations

from typing import Any

ARTIFACT_TYPES = (
    "DataVerdict",
    "Exports",
    "ModelVerdict",
    "Quarantine",
    "RetrainVerdict",
    "ServingCheck",
)


def __getattr__(name: str) -> Any:
    if name in ARTIFACT_TYPES:
        from components import artifacts

        return getattr(artifacts, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
