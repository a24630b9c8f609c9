"""Fine-tuning: which layers of a model are trained, and which are frozen.

Works on any Keras model, nested ones too. A frozen layer's weights do not change, and
frozen batch normalization uses its stored statistics in training as well (``trainable``
of Keras). ``freeze`` and ``unfreeze`` take effect at the next ``compile``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pipeline.config.train import FineTune, Train
from pipeline.training.fit import Phase
from pipeline.training.keras_of import keras_of, layers_in
from pipeline.training.models import TARGET_SCALE
from sluice.errors import NodeError, did_you_mean

# Stands for all layers of the models that a model contains, such as a pretrained one.
BACKBONE = "backbone"
# The second phase has so much of the first learning rate, if it is not configured.
_LEARNING_RATE_FACTOR = 0.1


def fine_tuning_phases(
    model: Any,
    settings: FineTune,
    train: Train,
    compile_with: Callable[[Train], None],
) -> list[Phase]:
    """Freezes layers, and returns the phases of the training.

    In the second one the optimizer begins anew: it has no state of the weights that
    were frozen, and the learning rate is constant.

    Raises:
      NodeError: see ``freeze``.
    """
    freeze(model, settings.freeze)
    after = settings.unfreeze_after
    if after is None:
        return [Phase(train.epochs)]
    learning_rate = settings.learning_rate
    if learning_rate is None:
        first = train.learning_rate
        initial = first if isinstance(first, float) else first.initial
        learning_rate = initial * _LEARNING_RATE_FACTOR

    def prepare() -> None:
        unfreeze(model, settings.freeze)
        compile_with(train.model_copy(update={"learning_rate": learning_rate}))

    return [Phase(after), Phase(train.epochs, prepare)]


def freeze(model: Any, patterns: Sequence[str]) -> None:
    """Freezes layers.

    Patterns are names of layers at any depth, ``*`` and ``?`` as in file names, or
    ``backbone``. A layer's own layers are frozen with it.

    Raises:
      NodeError: a pattern matches no layer, or no weight is left to train.
    """
    for layer in _matching(model, patterns):
        layer.trainable = False
    if not model.trainable_weights:
        raise NodeError(
            "all layers are frozen, so there is nothing to train",
            where="train.fine_tune.freeze",
            actual=", ".join(patterns),
            hint="freeze fewer layers; the last one should be trained",
        )


def unfreeze(model: Any, patterns: Sequence[str]) -> None:
    """Makes the layers that ``freeze`` froze trainable, but for two kinds.

    The statistics of batch normalization are those of the pretraining; the small
    batches of a fine-tuning would replace them before the other weights have adapted.
    The scale of a regression's label is never trained.
    """
    matching = _matching(model, patterns)
    for layer in matching:
        layer.trainable = True
    parts = [part for layer in matching for part in layers_in(layer)]
    for part in (*matching, *parts):
        is_scale = part.name == TARGET_SCALE
        if is_scale or isinstance(part, keras_of(model).layers.BatchNormalization):
            part.trainable = False


def _matching(model: Any, patterns: Sequence[str]) -> list[Any]:
    layers = layers_in(model)
    chosen: list[Any] = []
    for pattern in patterns:
        matching = [layer for layer in layers if fnmatchcase(layer.name, pattern)]
        if pattern == BACKBONE:
            kind = keras_of(model).Model
            matching += [layer for layer in layers if isinstance(layer, kind)]
        if not matching:
            names = [layer.name for layer in layers if layer.weights]
            raise NodeError(
                f"no layer is named {pattern!r}",
                where="train.fine_tune.freeze",
                expected="names of layers, * and ? as in file names, or backbone",
                examples=names,
                hint=did_you_mean(pattern, names),
            )
        chosen += matching
    return chosen
