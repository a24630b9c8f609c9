"""Environment of a job: module search path, and the script's ``__main__``.

A Sluice pipeline is imported from its project root. Any other TFX pipeline may use
functions of the script that built it, or modules next to that script.
"""

from __future__ import annotations

import multiprocessing.spawn
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runners.cache.key import code_roots
from sluice.project import activate, own_root
from sluice.storage import atomic

_FILE = "job_environment.json"


@dataclass(frozen=True)
class JobEnvironment:
    """Import paths and ``__main__`` of all jobs of one run.

    Attributes:
      project_root: of a Sluice project; None for any other pipeline.
      python_path: ``sys.path`` of the process that built the pipeline.
      main_path: the ``__main__`` script of that process, None if it is not a file.
      main_module: its name if it was started with ``python -m``.
      arguments: its ``sys.argv``, which it may read during import.
    """

    project_root: str | None = None
    python_path: tuple[str, ...] = ()
    main_path: str | None = None
    main_module: str | None = None
    arguments: tuple[str, ...] = ()

    def save(self, run_dir: Path) -> None:
        """Writes the file into the run's folder."""
        atomic.write_json(run_dir / _FILE, asdict(self))

    @classmethod
    def load(cls, run_dir: Path) -> JobEnvironment:
        """Reads what ``save`` wrote, also by a version with fewer keys."""
        return TypeAdapter(cls).validate_json((run_dir / _FILE).read_bytes())

    def enter(self) -> None:
        """Sets up the imports of this process like those of the building process."""
        # The order decides which of two packages of one name is found.
        sys.path[:] = dict.fromkeys([*self.python_path, *sys.path])
        if self.project_root:
            activate(Path(self.project_root))
        # As a spawned process of the standard library finds its functions.
        main: dict[str, Any] = {}
        if self.main_module:
            main["init_main_from_name"] = self.main_module
        elif self.main_path:
            main["init_main_from_path"] = self.main_path
        if main:
            rest = sys.argv
            try:
                sys.argv = [*self.arguments] or rest
                multiprocessing.spawn.prepare(main)
            finally:
                # Beam and TFX would parse these arguments.
                sys.argv = rest

    def roots(self) -> list[Path]:
        """Returns the directories whose modules count as the pipeline's own code."""
        if self.project_root:
            return list(dict.fromkeys([own_root(), Path(self.project_root)]))
        return code_roots(python_path=self.python_path)
