"""``sluice doctor``: what differs from the lock, and the devices."""

import json
import sys
from importlib.metadata import version
from types import ModuleType

import pytest

from runners.cli import doctor

pytestmark = pytest.mark.unit
TWO_GPUS = """
class config:
    list_physical_devices = lambda: [
        type("Device", (), {"device_type": kind}) for kind in ("CPU", "GPU", "GPU")
    ]
"""


@pytest.mark.parametrize(
    ("lock", "found"),
    [
        (f"click=={version('click')} \\\n    --hash=sha256:00\n", []),
        (
            "click==0.0.1\nno-such[extra]==2\n",
            [
                f"click is {version('click')}, locked is 0.0.1",
                "no-such is not installed, locked is 2",
            ],
        ),
    ],
)
def test_packages(tmp_path, lock, found):
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "tfx-1.99.txt").write_text(lock)
    assert doctor.differing_packages(tmp_path, "1.99.0") == found


@pytest.mark.parametrize("gpus", [0, 2])
def test_what_is_printed(monkeypatch, capsys, tmp_path, gpus):
    tensorflow = ModuleType("tensorflow")
    exec(TWO_GPUS if gpus else TWO_GPUS.replace('"GPU"', '"CPU"'), vars(tensorflow))
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setattr(doctor, "_DRIVER", tmp_path)
    assert doctor.command.main(["--json"], standalone_mode=False) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["tfx"] == version("tfx")
    if gpus:
        assert found["devices"] == "1 CPU, 2 GPU"
        assert found["strategy"] == "mirrored, since several GPUs are visible"
    else:
        assert "driver is there, but no GPU is visible" in found["devices"]
