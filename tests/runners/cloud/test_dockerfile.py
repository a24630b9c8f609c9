"""The Dockerfile's steps after the base image, carried out below a plain directory."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest

from pipeline.config.load import load_config
from pipeline.graph.custom_nodes import modules_of
from runners.cloud.image import image_of
from sluice.compat import child_environment
from sluice.project import own_root

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

# Steps that change the base system; here it has what they install.
OF_THE_SYSTEM = re.compile(r"apt-get|useradd|/etc/")
# Calls the command line of each node, as the service does, in one process: importing
# TFX takes 20 s. Without inputs each executor fails, after it has been started.
START_NODES = """
import importlib, json, runpy, sys

from pipeline.graph.node_registry import NODES

failed = {}
for node in NODES:
    module, _, name = node.component.partition(":")
    component = getattr(importlib.import_module(module), name)
    if not hasattr(component, "EXECUTOR_SPEC"):  # A resolver runs in the service.
        continue
    sys.argv = [
        "kubeflow_v2_run_executor",
        "--executor_class_path", component.EXECUTOR_SPEC.class_path,
        "--json_serialized_invocation_args", "{}",
    ]
    try:
        runpy.run_module(
            "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
            run_name="__main__",
        )
    except (Exception, SystemExit) as error:
        failed[node.id] = f"{type(error).__name__}: {error}"
for module in json.loads(sys.stdin.read()):
    importlib.import_module(module)
with open("failed.json", "w") as file:
    json.dump(failed, file)
"""


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """Yields the instructions with their arguments, on one line each."""
    text = re.sub(r"(?m)^#.*\n", "", dockerfile).replace("\\\n", " ")
    for line in filter(None, text.splitlines()):
        name, _, argument = line.partition(" ")
        yield name, argument.strip()


class PlainDirectory:
    """Stands for the image's file system; commands run with their paths below it."""

    def __init__(self, root: Path, context: Path) -> None:
        self.root, self.context = root, context
        self.directory = root
        bin_dir = root / "bin"
        bin_dir.mkdir()
        base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}")
        (bin_dir / "python").write_text(f'#!/bin/sh\nexec {base} "$@"\n')
        (bin_dir / "python").chmod(0o755)
        kept = ("LANG", "UV_CACHE_DIR", "XDG_CACHE_HOME", "HTTPS_PROXY", "https_proxy")
        certificates = "/etc/ssl/certs/ca-certificates.crt"
        self.environment = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **{name: value for name, value in os.environ.items() if "PIP_" in name},
            "PATH": f"{bin_dir}:/usr/bin:/bin",
            "HOME": os.environ["HOME"],
            "SSL_CERT_FILE": os.environ.get("SSL_CERT_FILE", certificates),
        }

    def below(self, text: str) -> str:
        return re.sub(r"(?<![\w.])/(opt/sluice|home)\b", rf"{self.root}/\1", text)

    def carry_out(self, name: str, argument: str) -> None:
        expanded = Template(argument).safe_substitute(self.environment)
        if name == "ARG" and "=" in argument:
            self.set(argument)
        elif name == "ENV":
            for pair in shlex.split(self.below(expanded)):
                self.set(pair)
        elif name == "WORKDIR":
            self.directory = Path(self.below(argument))
            self.directory.mkdir(parents=True, exist_ok=True)
        elif name == "COPY" and "--from" not in argument:
            *sources, target = shlex.split(self.below(expanded))
            for source in (self.context / item for item in sources):
                copied = self.directory / target
                if source.is_dir():
                    shutil.copytree(source, copied, dirs_exist_ok=True)
                else:
                    copied.mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, copied)
        elif name == "RUN" and not OF_THE_SYSTEM.search(argument):
            self.run(["sh", "-c", self.below(argument)])

    def set(self, pair: str) -> None:
        name, _, value = pair.partition("=")
        self.environment[name] = value

    def run(self, command: list[str], standard_input: str = "") -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            input=standard_input,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
        return done.stderr


def test_every_node_starts_in_what_the_dockerfile_builds(tmp_path):
    image = image_of(own_root())
    context, root = tmp_path / "context", tmp_path / "root"
    root.mkdir()
    image.write_context(context)
    plain = PlainDirectory(root, context)
    for name, argument in instructions(image.dockerfile):
        plain.carry_out(name, argument)

    assert plain.environment.items() >= child_environment().items()
    python = shutil.which("python", path=plain.environment["PATH"])
    assert python == str(root / "opt" / "sluice" / "venv" / "bin" / "python")
    assert not [*root.rglob("site-packages/pytest"), *root.rglob("site-packages/mypy")]
    modules = {
        module
        for name in ("digits", "taxi", "flowers")
        for module in modules_of(load_config(name, cwd=own_root()))
    }
    modules.add("components.kubeflow_entrypoint")
    log = plain.run(["python", "-c", START_NODES], json.dumps(sorted(modules)))
    failed = json.loads((plain.directory / "failed.json").read_text())
    assert log.count("Starting executor") == len(failed), failed
    assert not [text for text in failed.values() if "Import" in text], failed
