"""The files of recorded requests."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sample_data.tf_example import encode

pytestmark = pytest.mark.tf


def test_a_file_has_the_time_of_its_last_request(tmp_path, monkeypatch):
    """Found: the last requests of a day, written after midnight, were its oldest."""
    from serving.server import recording
    from serving.server.core import Answered

    late = datetime(2026, 11, 29, 23, 59, 58, tzinfo=timezone.utc).timestamp()
    version: Any = SimpleNamespace(name="m", servable=SimpleNamespace(version=1))
    signature: Any = SimpleNamespace(name="serving_default")
    inputs = {"examples": np.array([encode({"a": [1.0]})], object)}
    answered = Answered(version, "predict", signature, inputs, {"x": np.ones((1, 1))})
    recorder = recording.Recorder(tmp_path, 1.0, (), 10**9)
    for second in range(4):
        monkeypatch.setattr(recording.time, "time", lambda s=second: late + s)
        recorder(answered)
    recorder.close()
    found = [f"{x.parent.name} {x.name:.6}" for x in sorted(tmp_path.glob("*/*.gz"))]
    assert found == ["2026-11-29 235959", "2026-11-30 000001"]
