"""What a job must find around it: the module search path, and the script's `__main__`.

A pipeline of Sluice is found from its project root. Somebody else's pipeline may hold
functions of the script that built it, or modules beside it.
"""

from __future__ import annotations

import json
import multiprocessing.spawn
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from runners.local.cache.cache_key import code_roots
from sluice.files import atomic
from sluice.project import activate, own_root

_FILE = "surroundings.json"


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of all jobs of one run.

    Attributes:
      project_root: of a project of Sluice; None for a pipeline built elsewhere.
      python_path: ``sys.path`` of the process that built the pipeline.
      main_path: the script that is ``__main__`` there, None if it is no file.
      main_module: its name, where it was started by ``python -m``.
    """

    project_root: str | None = None
    python_path: tuple[str, ...] = ()
    main_path: str | None = None
    main_module: str | None = None

    def save(self, run_dir: Path) -> None:
        """Writes them beside the run's record."""
        atomic.write_json(run_dir / _FILE, asdict(self))

    @classmethod
    def load(cls, run_dir: Path) -> Surroundings:
        """Reads what ``save`` wrote."""
        data = json.loads((run_dir / _FILE).read_text(encoding="utf-8"))
        return cls(**{**data, "python_path": tuple(data["python_path"])})

    def enter(self) -> None:
        """Makes this process look like the one that built the pipeline."""
        for entry in self.python_path:
            if entry not in sys.path:
                sys.path.append(entry)
        if self.project_root:
            activate(Path(self.project_root))
        # As a spawned process of the standard library finds its functions.
        if self.main_module:
            multiprocessing.spawn.prepare({"init_main_from_name": self.main_module})
        elif self.main_path:
            multiprocessing.spawn.prepare({"init_main_from_path": self.main_path})

    def roots(self) -> list[Path]:
        """Returns the directories whose modules count as the pipeline's own code."""
        if self.project_root:
            return list(dict.fromkeys([own_root(), Path(self.project_root)]))
        return code_roots(python_path=self.python_path)
