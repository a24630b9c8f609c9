"""A project with some modules and files, for cache keys."""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "app/__init__.py": "",
    "app/steps.py": "from app import maths\n",
    "app/maths.py": "import numpy\n",
    "app/driver.py": "",
    "app/models.py": "def build(): pass\n",
    "app/unused.py": "",
    "udf/train.py": "import layers\nimport app.maths\n",
    "udf/layers.py": "",
    "udf/train_test.py": "",
    "schema.pbtxt": "feature {}",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path
