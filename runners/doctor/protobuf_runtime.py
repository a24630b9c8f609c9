"""Which implementation of protobuf is in use: the pure Python one is slow."""

from __future__ import annotations

from runners.doctor.check import Check
from sluice.workspace import installed_version

_VARIABLE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"


def check_protobuf_runtime() -> Check:
    """Returns protobuf's version and implementation; warns of ``python``."""
    version = installed_version("protobuf")
    try:
        from google.protobuf.internal import api_implementation
    except ImportError as error:
        return Check(
            "protobuf", "problem", f"it cannot be imported: {error}", "make setup"
        )
    found = f"{version}, {api_implementation.Type()}"
    if api_implementation.Type() == "python":
        hint = f"slow: unset {_VARIABLE}, or install protobuf anew with make setup"
        return Check("protobuf", "warning", found, hint)
    return Check("protobuf", "ok", found)
