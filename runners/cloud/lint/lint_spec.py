"""Lints a compiled pipeline: what the service refuses, or what fails in a container.

``lint_config`` has checked what the config says; this is about what only the compiled
tasks show: their parameters, types, conditions, lookups, and images of their own.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pipeline.config.config import Config
from pipeline.config.origin import KeyPath, key_path
from runners.cloud.lint.finding import Finding, error, warning
from runners.cloud.lint.lint_kubeflow import lint_kubeflow
from runners.cloud.lint.lint_value import lint_image, lint_path, lint_secret, texts_of
from runners.cloud.spec import (
    Constant,
    Container,
    Importer,
    PipelineParameter,
    Resolver,
    Spec,
    Task,
)
from sluice import code_fingerprint
from sluice.storage.storage import is_remote

# Linux takes no longer argument (MAX_ARG_STRLEN, 32 pages), and "{{$}}", all inputs of
# a task as JSON, is one. Neither Vertex AI's documentation nor its client names a limit
# of its own for a parameter or a spec.
MAX_ARGUMENT_BYTES = 32 * 4096
_BYTES_PER_ARTIFACT = 600  # URI, name and properties, besides the type.

# Titles of compiler_utils.TITLE_TO_CLASS_PATH, and its _SCHEMA_TITLE_RE.
_TFX_TYPES = frozenset(
    """Boolean Dataset ExampleAnomalies ExampleStatistics Examples File Float
    HyperParameters InferenceResult InfraBlessing Integer JsonValue Metrics Model
    ModelBlessing ModelEvaluation ModelRun PushedModel Schema Statistics String
    TransformCache TransformGraph TunerResults""".split()
)
_OWN_TYPE = re.compile(r"[a-z][a-z0-9_-]{2,20}\.[A-Z][A-Za-z0-9_-]{2,49}")
# Tokens of the CEL expressions that TFX compiles conditions to.
_INPUT = r"inputs\.(?:artifacts|parameter_values|parameters)\['(?P<input>[^']+)'\]"
_CEL = re.compile(
    rf"\s*(?:{_INPUT}(?:\.artifacts\[\d+\])?"
    r"(?:\.metadata\['[^']+'\]|\.uri|\.\w+_value)?"
    r"|[<>=!]=|[<>!()]|&&|\|\||-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"|true|false)"
)
_CLAUSE = re.compile(
    r'schema_title="(?P<title>[^"]+)"|state=LIVE|name="[^"]+"|uri="[^"]+"'
    r"|metadata\.\w+\.(?:number|string|bool)_value=(?:\"[^\"]*\"|[\w.-]+)"
)


def lint_spec(spec: Spec, config: Config) -> list[Finding]:
    """Returns the findings about a compiled pipeline.

    Args:
      spec: as it would be submitted.
      config: that it was compiled from, with a ``cloud`` section.
    """
    assert config.cloud is not None
    lint = _Lint(spec, config)
    checks = (
        lint.place,
        lint.types,
        lint.conditions,
        lint.lookups,
        lint.commands,
        lint.parameters,
        lint.sizes,
    )
    found = [finding for check in checks for finding in check()]
    if config.cloud.engine == "kubeflow":
        found += lint_kubeflow(spec)
    return found


class _Lint:
    """The checks of one spec; each yields its findings."""

    def __init__(self, spec: Spec, config: Config) -> None:
        self._spec, self._root = spec, config.root
        assert config.cloud is not None
        nodes = config.cloud.nodes.values()
        # ``lint_config`` has checked these; images get a tag if they have none.
        self._checked = {config.cloud.image, *(node.image for node in nodes)}
        own = [node.parameters for node in config.nodes.values()]
        given = texts_of([config.data_uri, config.model_params, own])
        self._texts_of_config = {text for _, text in given}

    def place(self) -> Iterator[Finding]:
        """Where artifacts are written."""
        root = self._spec.pipeline_root
        if not is_remote(root):
            what = f"artifacts are written to {root or 'nowhere'}"
            yield error("pipeline root", what, "set cloud.root to gs://BUCKET/FOLDER")

    def types(self) -> Iterator[Finding]:
        """Artifact types that a container can load."""
        for task in self._spec.tasks:
            for kind, types in (
                ("input", task.artifact_types),
                ("output", task.outputs),
            ):
                for key, item in types.items():
                    prefix, _, name = item.title.partition(".")
                    known = prefix == "tfx" and name in _TFX_TYPES
                    if known or (prefix != "tfx" and _OWN_TYPE.fullmatch(item.title)):
                        continue
                    yield error(
                        f"{task.id}, {kind} {key!r}",
                        f"the service has no artifact type {item.title!r}",
                        "name a type of your own by its import path, with a package of "
                        "3 to 21 characters: TYPE_NAME = 'package.ClassName'",
                    )

    def conditions(self) -> Iterator[Finding]:
        """Conditions that the service can evaluate."""
        for task in self._spec.tasks:
            rest, where = task.condition or "", f"{task.id}, condition"
            while rest.strip():
                token = _CEL.match(rest)
                if token is None:
                    yield error(
                        where,
                        f"the service cannot evaluate {rest.strip()!r}",
                        "compare properties, custom properties or URIs of artifacts "
                        "with constants",
                    )
                    break
                key = token["input"]
                if key and key not in {**task.artifacts, **task.parameters}:
                    what = f"the task has no input {key!r}"
                    yield error(where, what, "add it to the inputs")
                rest = rest[token.end() :]

    def lookups(self) -> Iterator[Finding]:
        """Lookups of earlier runs' artifacts that find what is meant."""
        written = Counter(
            item.title for task in self._spec.tasks for item in task.outputs.values()
            if not isinstance(task.executor, Resolver)
        )  # fmt: skip
        for task in self._spec.tasks:
            if not isinstance(task.executor, Resolver):
                continue
            for key, query in task.executor.queries.items():
                where = f"{task.id}, output {key!r}"
                clauses = [_CLAUSE.fullmatch(part) for part in query.split(" AND ")]
                title = next((c["title"] for c in clauses if c and c["title"]), None)
                if None in clauses or title is None:
                    what = f"the service cannot look up {query}"
                    yield error(
                        where, what, "look up by type, state, name and metadata"
                    )
                elif title == "tfx.Artifact":
                    yield error(
                        where,
                        "TFX looks up artifacts of your own types as tfx.Artifact, and "
                        "finds none",
                        "look up an artifact of a TFX type, or let your component find "
                        "what it needs",
                    )
                elif len(clauses) <= 2 and written[title] > 1:
                    yield warning(
                        where,
                        f"{written[title]} tasks write a {title}, and the lookup takes "
                        "whichever is the latest",
                        "let one task write this type",
                    )

    def commands(self) -> Iterator[Finding]:
        """Images of tasks' own, and code that no image holds."""
        checked = set(self._checked)
        for task in self._spec.tasks:
            if not isinstance(task.executor, Container):
                continue
            image = task.executor.image
            if not image:
                what, fix = "the task has no image", "set cloud.image"
                yield error(f"{task.id}, image", what, fix)
            elif checked.isdisjoint({image, image.rpartition(":")[0]}):
                checked.add(image)
                yield from lint_image(image, f"{task.id}, image")
            for path in _executors(task.executor):
                if path.startswith("__main__."):
                    yield error(
                        f"{task.id}, executor",
                        f"{path} is defined in the program that compiles",
                        "move it into a module of your package",
                    )

    def parameters(self) -> Iterator[Finding]:
        """Paths of this machine and credentials in what tasks are given."""
        for task in self._spec.tasks:
            for path, text in self._texts(task):
                if text in self._texts_of_config:
                    continue
                where = f"{task.id}, {key_path(path)}"
                # The exit handler's parameter is the config, of which it reads no file.
                if not task.is_exit_handler:
                    yield from lint_path(text, self._root, where)
                yield from lint_secret(str(path[-1]), text, where)

    def sizes(self) -> Iterator[Finding]:
        """Inputs that fit into one argument of a command line."""
        for task in self._spec.tasks:
            values = {key: self._value(task, key) for key in task.parameters}
            sizes = {key: _size(value) for key, value in values.items()}
            types = [*task.artifact_types.values(), *task.outputs.values()]
            total = sum(sizes.values()) + sum(
                _size(dict(item.schema)) + _BYTES_PER_ARTIFACT for item in types
            )
            if not isinstance(task.executor, Container) or total < MAX_ARGUMENT_BYTES:
                continue
            largest = max(sizes, key=lambda key: sizes[key], default="")
            yield error(
                f"{task.id}, {largest}",
                f"the task's inputs have {total:,} bytes, {sizes.get(largest, 0):,} of "
                f"them here; a command line takes {MAX_ARGUMENT_BYTES:,} in one "
                "argument",
                "write the value into a file at gs://, and give its address",
            )

    def _texts(self, task: Task) -> Iterator[tuple[KeyPath, str]]:
        """Yields the texts of a task's parameters, also those inside of JSON."""
        for key in task.parameters:
            if key != code_fingerprint.PROPERTY:
                yield from _decoded((key,), self._value(task, key))
        if isinstance(task.executor, Importer):
            uri = task.executor.uri
            yield from _decoded(("artifact_uri",), getattr(uri, "value", None))
            yield from _decoded(("metadata",), dict(task.executor.metadata))

    def _value(self, task: Task, key: str) -> Any:
        """Returns the value of a parameter, its default if the run has none."""
        match task.parameters[key]:
            case Constant(value):
                return value
            case PipelineParameter(name):
                default = self._spec.parameters[name].default
                return self._spec.parameter_values.get(name, default)
        return None


def _decoded(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    for key, text in texts_of(value, path):
        if text[:1] in ("{", "["):
            try:
                yield from _decoded(key, json.loads(text))
                continue
            except ValueError:
                pass
        yield key, text


def _executors(container: Container) -> Iterator[str]:
    for flag, value in zip(container.args, container.args[1:], strict=False):
        if flag == "--executor_class_path":
            yield value


def _size(value: Any) -> int:
    return len(json.dumps(value).encode())
