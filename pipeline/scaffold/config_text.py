"""Formats a proposed config as YAML, with the reason of each choice as a comment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pipeline.scaffold.propose import Proposal

# Strings of YAML 1.2 that YAML 1.1 reads as another type.
_WORDS = frozenset("y n yes no on off true false null none nan inf".split())
_PLAIN = re.compile(r"[A-Za-z][\w./-]*( [\w./-]+)*", re.ASCII)
_COMMENT_COLUMN = 26
_LINE = 88
_WIDE = 46

_CONFIG = """\
# {name}: proposed by 'sluice init' from
# {sampled}.
# Review it, then check it with 'sluice validate {name}'.
# 'sluice config {name}' prints all keys, with their defaults;
# docs/config.md of Sluice explains them.
version: 1
name: {name_text}
description: {description}

{data}
schema: schemas/{name}/schema.pbtxt

{label}

# The model uses only these.
features:
{features}

model: {model:<19}  # {model_takes}; or your own package.module:build_model

train:
  epochs: 20                # at most, see early_stopping
  batch_size: {batch_size:<12}  # over all replicas
  learning_rate: 0.001
  seed: 17
  early_stopping: {{patience: 3}}  # epochs without a better eval loss

evaluate:
  metrics:
{metrics}
  # A new model must meet all of these to be pushed.
  thresholds:
{limits}
    # At most 0.01 worse than the latest blessed model.
    - {{metric: {metric}, change: {{direction: higher_is_better, absolute: -0.01}}}}
"""

_MODELS = {
    "cnn": "takes one image",
    "wide_deep": "takes a table",
    "dense": "takes anything",
}
_BINARY_METRICS = """\
    - AUC
    - {class: AUC, name: auc_pr, params: {curve: PR}}
    - BinaryAccuracy
    - ExampleCount"""
_BINARY_LIMITS = """\
    # Random guessing has 0.5. Raise this to the quality that you need. (Accuracy
    # is a worse measure here: one class has {share} of the records.)
    - {{metric: auc, lower_bound: 0.55}}"""
_METRICS = """\
    - {class: SparseCategoricalAccuracy, name: accuracy}
    - {class: SparseCategoricalCrossentropy, name: cross_entropy}
    - ExampleCount"""
_LIMITS = """\
    # Always predicting the largest class has {share}. Raise this to the quality
    # that you need.
    - {{metric: accuracy, lower_bound: {lowest}}}"""


def config_text(proposal: Proposal) -> str:
    """Returns the text of a config that validates against the proposal's schema."""
    is_binary, share = proposal.is_binary, f"{proposal.majority:.1%}"
    limits = _BINARY_LIMITS if is_binary else _LIMITS
    parts = [_data(proposal), _examples(proposal), _rules(proposal)]
    parts.append(_sensitive(proposal))
    return _CONFIG.format(
        name=proposal.name,
        sampled=proposal.sampled,
        name_text=_text(proposal.name),
        description=_text(f"Predicts {proposal.label.name}."),
        data="".join("\n".join([*part, "", ""]) for part in parts if part)[:-1],
        label="\n".join(_label(proposal)),
        features="\n".join(_features(proposal)),
        model=proposal.model,
        model_takes=_MODELS[proposal.model],
        batch_size=proposal.batch_size,
        metrics=_BINARY_METRICS if is_binary else _METRICS,
        limits=limits.format(share=share, lowest=proposal.accuracy_limit),
        metric="auc" if is_binary else "accuracy",
    )


def _data(proposal: Proposal) -> list[str]:
    splits, by = proposal.splits, proposal.split_by
    lines = ["data:", f"  dir: {_text(proposal.data_dir)}"]
    if splits.files is None:
        lines += [_beside("  splits:", splits.why)]
        return lines + [f"    {k}: {_quoted(v)}" for k, v in splits.splits.items()]
    together = "  # Records with the same value of this feature are in the same split."
    parts = {"train": 8, "eval": 1, "test": 1, **({"by": _text(by)} if by else {})}
    return [
        *lines,
        f"  files: {_quoted(splits.files)}",
        f"  # Split by hash: {one_line(splits.why)}.",
        *([together] if by else []),
        f"  hash_splits: {_flow(parts)}",
    ]


def _examples(proposal: Proposal) -> list[str]:
    lines, splits = [], proposal.splits
    if splits.spanned:
        window = "only the newest span; 7: the newest seven"
        lines.append(_beside("  window: 1", window))
    if splits.spanned and splits.marker:
        found = f"  complete_when: {{marker: {_text(splits.marker)}}}"
        lines.append(_beside(found, "every span has this file"))
    elif splits.spanned:
        lines += [
            "  # {marker: _SUCCESS} or {quiet_for_s: 600} waits for complete spans.",
            "  complete_when: always",
        ]
    if formats := proposal.image_formats:
        # GIF is not among the default formats.
        limits = {"formats": f"[{', '.join(formats)}]"} if "gif" in formats else {}
        why = "every image is decoded, and its size checked"
        lines.append(_beside(f"  images: {_flow(limits)}", why))
    return ["examples:", *lines] if lines else []


def _rules(proposal: Proposal) -> list[str]:
    lines = []
    for name in proposal.not_finite:
        rule = {"feature": _text(name), "anomaly": "not_finite", "action": "warn"}
        lines.append("    # Found in the records; the model does not use this feature.")
        lines.append(f"    - {_flow(rule)}")
    return ["validate:", "  rules:", *lines] if lines else []


def _sensitive(proposal: Proposal) -> list[str]:
    if not proposal.sensitive:
        return []
    why = "# Chosen by name. Their values are never shown, only counted."
    return [why, f"sensitive: [{', '.join(map(_text, proposal.sensitive))}]"]


def _label(proposal: Proposal) -> list[str]:
    why = ", ".join(proposal.label.reasons) or "your choice"
    classes = "  # Its classes are in the schema, as its domain."
    if proposal.classes:
        listed = [
            _quoted(c) if isinstance(c, str) else str(c) for c in proposal.classes
        ]
        comment = "of two classes the second is the positive one"
        classes = _beside(f"  classes: [{', '.join(listed)}]", comment)
    return [
        f"# Chosen as the label: {one_line(why)}.",
        "label:",
        f"  feature: {_text(proposal.label.name)}",
        classes,
    ]


def _features(proposal: Proposal) -> list[str]:
    lines: list[str] = []
    used = proposal.used
    entries = [f"  {_text(one.name)}: {_flow(one.spec or {})}" for one in used]
    width = max((len(e) for e in entries if len(e) <= _WIDE), default=0)
    for choice, entry in zip(used, entries, strict=True):
        comment = f"# {one_line(choice.why)}"
        beside = (f"{entry:<{width}}  {comment}", f"{entry}  {comment}")
        lines += next(
            ([line] for line in beside if len(line) <= _LINE), [f"  {comment}", entry]
        )
    left_out = [choice for choice in proposal.features if choice.spec is None]
    lines += ["  # Left out:"] if left_out else []
    lines += [f"  #   {one_line(f'{one.name}: {one.why}')}" for one in left_out]
    return lines


def _beside(line: str, comment: str) -> str:
    return f"{line:<{_COMMENT_COLUMN}}  # {one_line(comment)}"


def _flow(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def _text(value: str) -> str:
    """Returns a string in YAML, quoted only if necessary."""
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
    return value if plain else _quoted(value)


def _quoted(value: str) -> str:
    # A JSON string is one in YAML too, unless it has characters that are not printable.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def one_line(text: str) -> str:
    """Returns text without line breaks, which would end a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
