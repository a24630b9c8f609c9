"""A program ``docker`` that runs the command of a container without a container."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from sluice.project import own_root

# As Docker, it takes the environment from the options and nothing from its own.
_PROGRAM = """#!{python}
import json, os, signal, sys
folder, given = {folder!r}, sys.argv[1:]
with open(folder + "/calls", "a") as file:
    print(json.dumps(given), file=file)
verb, *rest = given
if verb == "kill":
    os.kill(int(open(folder + "/" + rest[0]).read()), signal.SIGKILL)
    sys.exit()
assert verb == "run", verb
env = {{"PATH": {path!r}, "PYTHONPATH": {root!r}}}
entry = name = None
while rest[0].startswith("-"):
    option, equals, value = rest.pop(0).partition("=")
    if option in ("-e", "-v", "--entrypoint"):
        value = rest.pop(0)
    if option == "-e":
        key, _, text = value.partition("=")
        env[key] = text
    if option == "--entrypoint":
        entry = value
    if option == "--name":
        name = value
with open(folder + "/" + name, "w") as file:
    print(os.getpid(), file=file)
image, *arguments = rest
os.execvpe(entry, [entry, *arguments], env)
"""


class FakeDocker:
    """The program on ``PATH``, and how it was called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls = folder / "calls"
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "docker"
        path = str(Path(sys.executable).parent)
        program.write_text(
            _PROGRAM.format(
                python=sys.executable,
                folder=str(folder),
                path=f"{path}:/usr/bin:/bin",
                root=str(own_root()),
            )
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")

    def calls(self) -> list[list[str]]:
        """Returns the arguments of all calls so far."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]

    @staticmethod
    def values(call: list[str], option: str) -> list[str]:
        """Returns the values of an option that is given as ``-o VALUE``."""
        return [value for key, value in pairwise(call) if key == option]

    @staticmethod
    def name(call: list[str]) -> str:
        """Returns the name of the container that a call runs."""
        (found,) = (item for item in call if item.startswith("--name="))
        return found.removeprefix("--name=")
