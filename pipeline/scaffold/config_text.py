"""Writes a proposed config as YAML, with the reason of each choice beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from pipeline.scaffold.choose_features import FeatureChoice
from pipeline.scaffold.propose import Proposal

# What YAML 1.1 reads as something else than a string.
_WORDS = frozenset("y n yes no on off true false null none nan inf".split())
_PLAIN = re.compile(r"[A-Za-z][\w./-]*( [\w./-]+)*", re.ASCII)
_COMMENT_COLUMN = 26
_LINE = 88
_WIDE = 46


def config_text(proposal: Proposal) -> str:
    """Returns the text of a config that validates against the proposal's schema."""
    parts = [
        _head(proposal),
        _data(proposal),
        _checks(proposal),
        [f"schema: schemas/{proposal.name}/schema.pbtxt"],
        _label(proposal),
        _features(proposal),
        _model(proposal),
        _evaluate(proposal),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _head(proposal: Proposal) -> list[str]:
    name = proposal.name
    return [
        f"# {name}: proposed by 'sluice init', to be reviewed.",
        "#",
        f"# Looked at {proposal.sampled}.",
        "# Every key is explained in docs/config.md of Sluice.",
        f"# 'sluice config {name}' prints the rest with its defaults,",
        f"# 'sluice validate {name}' checks this file in a second.",
        "version: 1",
        f"name: {_text(name)}",
        f"description: {_text('Predicts ' + proposal.label.name + '.')}",
    ]


def _data(proposal: Proposal) -> list[str]:
    splits = proposal.splits
    lines = ["data:", f"  dir: {_text(proposal.data_dir)}"]
    if splits.files is None:
        lines += [_beside("  splits:", splits.why)]
        lines += [f"    {name}: {_quoted(p)}" for name, p in splits.splits.items()]
    else:
        parts = {"train": "8", "eval": "1", "test": "1"}
        if proposal.split_by:
            parts["by"] = _text(proposal.split_by)
        lines += [
            f"  files: {_quoted(splits.files)}",
            f"  # Split by hash: {one_line(splits.why)}.",
        ]
        if proposal.split_by:
            lines.append("  # Records that have this feature in common stay together.")
        lines.append(f"  hash_splits: {_flow(parts)}")
    examples = []
    if splits.spanned:
        window = "the newest span alone; 7 takes the last seven"
        examples.append(_beside("  window: 1", window))
        examples += _complete_when(splits.marker)
    if formats := proposal.image_formats:
        # GIFs are allowed only where they are named.
        limits = {"formats": f"[{', '.join(formats)}]"} if "gif" in formats else {}
        why = "decodes each, and checks its size"
        examples.append(_beside(f"  images: {_flow(limits)}", why))
    return [*lines, "", "examples:", *examples] if examples else lines


def _complete_when(marker: str | None) -> list[str]:
    if marker:
        found = f"  complete_when: {{marker: {_text(marker)}}}"
        return [_beside(found, "every span has this file")]
    return [
        "  # {marker: _SUCCESS} or {quiet_for_s: 600} waits until a span is whole.",
        "  complete_when: always",
    ]


def _checks(proposal: Proposal) -> list[str]:
    lines = []
    if proposal.not_finite:
        lines += ["validate:", "  rules:"]
        for name in proposal.not_finite:
            rule = {"feature": _text(name), "anomaly": "not_finite", "action": "warn"}
            lines.append("    # Seen in the records, and not used by the model.")
            lines.append(f"    - {_flow(rule)}")
    if proposal.sensitive:
        lines += [""] if lines else []
        lines.append("# By their names; their values are never shown, only counted.")
        lines.append(f"sensitive: [{', '.join(map(_text, proposal.sensitive))}]")
    return lines


def _label(proposal: Proposal) -> list[str]:
    why = ", ".join(proposal.label.reasons) or "as you said"
    lines = [
        f"# {one_line(why[:1].upper() + why[1:])}.",
        "label:",
        f"  feature: {_text(proposal.label.name)}",
    ]
    if proposal.classes:
        listed = ", ".join(_scalar(value) for value in proposal.classes)
        comment = "of two classes the second is the positive one"
        lines.append(_beside(f"  classes: [{listed}]", comment))
    else:
        lines.append("  # Its classes are the schema's domain.")
    return lines


def _features(proposal: Proposal) -> list[str]:
    lines = ["# A feature that is not listed is not used.", "features:"]
    entries = [_feature(choice) for choice in proposal.used]
    width = max((len(e) for e in entries if len(e) <= _WIDE), default=0)
    for choice, entry in zip(proposal.used, entries, strict=True):
        comment = f"# {one_line(choice.why)}"
        beside = (f"{entry:<{width}}  {comment}", f"{entry}  {comment}")
        lines += next(
            ([line] for line in beside if len(line) <= _LINE),
            [f"  {comment}", entry],
        )
    left_out = [choice for choice in proposal.features if choice.spec is None]
    if left_out:
        lines.append("  # Left out:")
        for choice in left_out:
            lines.append(f"  #   {one_line(f'{choice.name}: {choice.why}')}")
    return lines


def _feature(choice: FeatureChoice) -> str:
    spec = {key: str(value) for key, value in (choice.spec or {}).items()}
    return f"  {_text(choice.name)}: {_flow(spec)}"


def _model(proposal: Proposal) -> list[str]:
    others = {
        "cnn": "takes one image",
        "wide_deep": "takes a table",
        "dense": "takes anything",
    }
    model = proposal.model
    comment = f"{others[model]}; or your own package.module:build_model"
    return [
        _beside(f"model: {model}", comment),
        "",
        "train:",
        _beside("  epochs: 20", "at most; it stops early"),
        _beside(f"  batch_size: {proposal.batch_size}", "over all replicas"),
        "  learning_rate: 0.001",
        "  seed: 17",
        _beside("  early_stopping: {patience: 3}", "epochs without a better eval loss"),
    ]


def _evaluate(proposal: Proposal) -> list[str]:
    share = f"{proposal.majority:.1%} of the records"
    if proposal.is_binary:
        metric = "auc"
        metrics = [
            "AUC",
            "{class: AUC, name: auc_pr, params: {curve: PR}}",
            "BinaryAccuracy",
            "ExampleCount",
        ]
        limits = [
            "    # Guessing has 0.5. Raise it to what the model should be worth. (The",
            f"    # accuracy says less: one class has {share}.)",
            "    - {metric: auc, lower_bound: 0.55}",
        ]
    else:
        metric = "accuracy"
        metrics = [
            "{class: SparseCategoricalAccuracy, name: accuracy}",
            "{class: SparseCategoricalCrossentropy, name: cross_entropy}",
            "ExampleCount",
        ]
        limits = [
            f"    # The largest class has {share}, so always saying it is",
            "    # right so often. Raise this to what the model should be worth.",
            f"    - {{metric: accuracy, lower_bound: {proposal.accuracy_limit}}}",
        ]
    change = "{direction: higher_is_better, absolute: -0.01}"
    return [
        "evaluate:",
        "  metrics:",
        *(f"    - {metric}" for metric in metrics),
        "  # What a new model must reach before it is pushed. All of it must hold.",
        "  thresholds:",
        *limits,
        "    # At most one point worse than the model that was blessed last.",
        f"    - {{metric: {metric}, change: {change}}}",
    ]


def _beside(line: str, comment: str) -> str:
    return f"{line:<{_COMMENT_COLUMN}}  # {one_line(comment)}"


def _flow(values: Mapping[str, str]) -> str:
    inside: Iterable[str] = (f"{key}: {value}" for key, value in values.items())
    return "{" + ", ".join(inside) + "}"


def _scalar(value: int | str) -> str:
    return str(value) if isinstance(value, int) else _quoted(value)


def _text(value: str) -> str:
    """Returns a string as YAML reads it back, quoted only where it must be."""
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if plain else _quoted(value)


def _quoted(value: str) -> str:
    # JSON's strings are YAML's, but for what YAML does not take for printable.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def one_line(text: str) -> str:
    """Returns text without what would end a comment, such as a name's line break."""
    return "".join(c if c.isprintable() else "?" for c in text)
