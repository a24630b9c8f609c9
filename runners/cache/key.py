"""Cache key of a node, computed from named parts.

TFX's own key contains Beam's arguments and the pipeline root, which change no result,
and lacks the code behind an import path, the content of files that properties name,
and package versions. The parts are:

    node        pipeline, id, kind; the executor's class, or container and command
    code        digest of each module that the node runs, by name
    files       name and digest of each local file that a property names
    properties  all other exec properties, JSON inside strings read
    inputs      id and uri of each artifact; the digest of one made elsewhere. Without
                the model that a warm start has found: each training would make a newer
                one, and the next run would train again, for ever
    outputs     type and properties of each artifact to be made
    packages    versions

The fingerprint of a config's node (``pipeline.graph.create_pipeline``) lists its
modules and packages. For other nodes, imports are followed from the executor, the
driver and the functions that properties name; Python files and wheels are followed for
all.

Not covered: files that user code opens under names of its own, the content of
directories that properties name, modules imported by a computed name, and installed
packages that user code imports.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice import code_fingerprint
from sluice.errors import ConfigError
from sluice.node_kinds import ABOUT_BASELINE, BASELINE, CANDIDATE, FIRST_WEIGHTS
from sluice.project import own_root
from sluice.storage import digest
from sluice.storage.storage import storage_for
from sluice.workspace import installed_version

_MODULE_PATH = "module_path"
# How TFX names user code that it has packed: module@/pipeline/root/_wheels/x.whl.
_IN_WHEEL = re.compile(r"(\w+)@(.+\.whl)")
_MAX_PATH = 4096
_TRAINING = "pipeline.training.run_fn.run_fn"


@dataclass(frozen=True)
class InputArtifact:
    """An input artifact of the node.

    Attributes:
      id: in ML Metadata.
      uri: of its content.
      is_external: whether an Importer registered it, so that its content may change.
    """

    id: int
    uri: str
    is_external: bool = False


@dataclass(frozen=True)
class NodeFacts:
    """The launcher's data on a node before it runs.

    Attributes:
      pipeline: the pipeline's id.
      id: the node's id.
      kind: the type name of the node.
      executor: ``class`` and ``flags``, or ``image``, ``commands`` and ``args``.
      driver: class path of the custom driver.
      properties: resolved exec properties, JSON values.
      inputs: artifacts by key, in order.
      outputs: by key, ``type`` and ``properties`` of the artifacts to be made.
    """

    pipeline: str
    id: str
    kind: str
    executor: Mapping[str, Any] = field(default_factory=dict)
    driver: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Sequence[InputArtifact]] = field(default_factory=dict)
    outputs: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def key_parts(facts: NodeFacts, roots: Sequence[Path]) -> dict[str, Any]:
    """Returns the parts of a node's key; JSON values only.

    Reads the sources below ``roots``, the files that the properties name, and the
    content of external inputs.

    ``roots`` are the directories that hold the code to follow; see ``code_roots``.

    Raises:
      ConfigError: code that the node runs is not valid Python.
    """
    properties = dict(facts.properties)
    stamp = _stamp(properties.get(code_fingerprint.PROPERTY))
    if stamp:
        del properties[code_fingerprint.PROPERTY]
    reader = _PropertyReader()
    seen = {name: reader.read(value, name) for name, value in properties.items()}
    parts = {
        "node": {
            "pipeline": facts.pipeline,
            "id": facts.id,
            "kind": facts.kind,
            "executor": dict(facts.executor),
            "driver": facts.driver,
        },
        "code": _code_of(facts, stamp, reader, roots),
        "files": reader.files,
        "properties": seen,
        "inputs": _inputs_of(_without_first_weights(facts)),
        "outputs": {key: list(items) for key, items in facts.outputs.items()},
        "packages": stamp["packages"]
        if stamp
        else {name: installed_version(name) for name in code_fingerprint.PACKAGES},
    }
    return without_baseline(parts) if is_own_baseline(facts.inputs) else parts


def edited_since(facts: NodeFacts, roots: Sequence[Path]) -> list[str]:
    """Returns the modules that were edited since the fingerprint was computed.

    It is computed when the graph is compiled; the node imports the code when it runs,
    maybe much later. Empty for a node without fingerprint.
    """
    stamp = _stamp(facts.properties.get(code_fingerprint.PROPERTY))
    edited = []
    for module, before in (stamp["code"] if stamp else {}).items():
        path = code_fingerprint.source_file(module, roots)
        if path is not None and digest.of_file(path) != before:
            edited.append(module)
    return edited


def key_of(parts: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of the parts' canonical JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return digest.of_bytes(text.encode())


def without_baseline(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parts without the baseline model and its description."""
    inputs, properties = dict(parts["inputs"]), dict(parts["properties"])
    inputs.pop(BASELINE, None)
    properties.pop(ABOUT_BASELINE, None)
    return {**parts, "inputs": inputs, "properties": properties}


def is_own_baseline(inputs: Mapping[str, Sequence[InputArtifact]]) -> bool:
    """Whether the baseline model is the candidate itself."""
    baseline = [artifact.id for artifact in inputs.get(BASELINE, ())]
    candidate = [artifact.id for artifact in inputs.get(CANDIDATE, ())]
    return bool(baseline) and baseline == candidate


def code_roots(python_path: Sequence[str] | None = None) -> list[Path]:
    """Returns the directories with code of this project or the user.

    These are the import path, the working directory and Sluice's own root, without
    installed packages and the standard library.

    Args:
      python_path: the import path; None for this process's ``sys.path``.
    """
    entries = sys.path if python_path is None else python_path
    candidates = [
        *(Path(entry) for entry in entries),
        Path.cwd(),
        own_root(),
    ]
    roots = (path.resolve() for path in candidates if path.is_dir())
    return list(dict.fromkeys(path for path in roots if not _is_installed(path)))


def _is_installed(path: Path) -> bool:
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    return any(path.is_relative_to(Path(folder).resolve()) for folder in library)


def _stamp(value: Any) -> dict[str, Any] | None:
    """Returns the fingerprint, None if the property is something else."""
    found = _parsed(value)
    if not isinstance(found, dict) or set(found) != {"code", "packages"}:
        return None
    return found if isinstance(found["code"], dict) else None


def _parsed(value: Any) -> Any:
    """Returns the object or list that a string holds as JSON, None if it does not."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except ValueError:
        return None


@dataclass
class _PropertyReader:
    """Reads exec properties and collects the files and modules that they name.

    Attributes:
      files: name and digest of each file, by the path of the property.
      python_files: files whose imports are followed.
      wheels: pairs of a module and the wheel that TFX has packed it in.
      texts: pairs of a property's name and a string that may be an import path.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    python_files: list[Path] = field(default_factory=list)
    wheels: list[tuple[str, Path]] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)

    def read(self, value: Any, where: str) -> Any:
        """Returns a value as in the key: JSON parsed, files without their folder."""
        if (inner := _parsed(value)) is not None:
            return self.read(inner, where)
        if isinstance(value, Mapping):
            return {str(k): self.read(v, f"{where}.{k}") for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.read(v, f"{where}[{i}]") for i, v in enumerate(value)]
        return self._read_text(value, where) if isinstance(value, str) else value

    def _read_text(self, text: str, where: str) -> str:
        if path := _local_file(text):
            if path.suffix == ".py":
                self.python_files.append(path)
            else:
                found = {"name": path.name, "digest": digest.of_file(path)}
                self.files[where] = found
            return path.name
        packed = _IN_WHEEL.fullmatch(text)
        if packed and (wheel := _local_file(packed[2])):
            # The wheel's name has a hash over every file of the module's folder.
            self.wheels.append((packed[1], wheel))
            return packed[1]
        self.texts.append((where, text))
        return text


def _local_file(text: str) -> Path | None:
    if not 0 < len(text) <= _MAX_PATH or "\0" in text or "\n" in text:
        return None
    path = Path(text)
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def _code_of(
    facts: NodeFacts,
    stamp: Mapping[str, Any] | None,
    reader: _PropertyReader,
    roots: Sequence[Path],
) -> dict[str, str]:
    found: dict[str, str] = (
        dict(stamp["code"]) if stamp else _named_code(facts, reader, roots)
    )
    for path in reader.python_files:
        _merge(found, file_digests(path, roots))
    for module, wheel in reader.wheels:
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(wheel).extractall(folder)
            places = [Path(folder), *roots]
            _merge(found, code_fingerprint.digests_of([module], places))
    return dict(sorted(found.items()))


def _named_code(
    facts: NodeFacts, reader: _PropertyReader, roots: Sequence[Path]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for class_path in (facts.executor.get("class"), facts.driver):
        module = (class_path or "").rpartition(".")[0]
        # TFX's own code is covered by its version.
        if module and module.partition(".")[0] != "tfx":
            _merge(found, _module_digests(module, roots))
    for where, text in reader.texts:
        is_module = where == _MODULE_PATH
        if named := code_fingerprint.named_module(text, roots, is_module):
            _merge(found, _module_digests(named, roots))
    return found


def _merge(found: dict[str, str], more: Mapping[str, str]) -> None:
    """Adds digests; those of two modules with one name are combined."""
    for name, content in more.items():
        known = found.setdefault(name, content)
        if known != content:
            found[name] = digest.of_bytes("".join(sorted((known, content))).encode())


def _module_digests(module: str, roots: Sequence[Path]) -> dict[str, str]:
    if module == "__main__":
        return _main_digests(roots)
    try:
        return code_fingerprint.digests_of([module], roots)
    except ConfigError:
        if code_fingerprint.source_file(module, roots):
            raise
        return _unknown(module)


def _main_digests(roots: Sequence[Path]) -> dict[str, str]:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec and spec.name != "__main__":  # python -m
        return _module_digests(spec.name, roots)
    path = _local_file(getattr(main, "__file__", None) or "")
    return file_digests(path, roots) if path else _unknown("__main__")


def file_digests(path: Path, roots: Sequence[Path]) -> dict[str, str]:
    """Returns the digests of a file that is no module of a package, and its imports."""
    path = path.resolve()
    if code_fingerprint.source_file(path.stem, [path.parent]) != path:
        return {path.name: digest.of_file(path)}
    return code_fingerprint.digests_of([path.stem], [path.parent, *roots])


def _unknown(module: str) -> dict[str, str]:
    """Returns a digest for code without a file (a notebook), which is never cached."""
    return {module: f"unknown {secrets.token_hex(8)}"}


def _without_first_weights(
    facts: NodeFacts,
) -> Mapping[str, Sequence[InputArtifact]]:
    """Returns the inputs; of our training without the model that it starts from."""
    if facts.properties.get("run_fn") != _TRAINING:
        return facts.inputs
    return {key: items for key, items in facts.inputs.items() if key != FIRST_WEIGHTS}


def _inputs_of(
    inputs: Mapping[str, Sequence[InputArtifact]],
) -> dict[str, list[dict[str, Any]]]:
    return {
        key: [_input_of(artifact) for artifact in artifacts]
        for key, artifacts in inputs.items()
        if artifacts
    }


def _input_of(artifact: InputArtifact) -> dict[str, Any]:
    found: dict[str, Any] = {"id": artifact.id, "uri": artifact.uri}
    uri, storage = artifact.uri, storage_for(artifact.uri)
    if artifact.is_external and storage.exists(uri):
        is_file = storage.is_file(uri)
        found["digest"] = digest.of_file(uri) if is_file else digest.of_tree(uri)
    return found
