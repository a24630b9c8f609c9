"""Config section ``train``: how the model is trained, on which hardware.

Names of optimizers, losses, metrics and callbacks are those of Keras. Everything that
counts passes over the data is in epochs, so that another batch size does not change its
meaning.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from pipeline.config.learning_rate import LearningRate
from sluice.config_section import (
    Count,
    Flag,
    Fraction,
    NotEmpty,
    NotNegative,
    Number,
    Params,
    PositiveNumber,
    ProjectPath,
    Section,
    Text,
    WholeNumber,
    shorthand,
)


class KerasObject(Section):
    """A class of Keras with its arguments. `Adam` is short for `{class: Adam}`."""

    class_name: Annotated[Text, Field(alias="class")] = Field(
        description="A class of Keras, such as `Adam`."
    )
    params: Params = Field(default={}, description="Arguments of the class.")


KerasSpec = Annotated[KerasObject, shorthand("class", KerasObject)]

# Models that `warm_start` finds; anything else is a path.
TRAINED_BEFORE = ("served", "latest_blessed", "latest")

ClassWeights = Annotated[
    Annotated[Literal["balanced"], Tag("name")]
    | Annotated[NotEmpty[dict[str | int, NotNegative]], Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict) else "name"),
]

_METRIC = "What is watched, by its name in the history, such as `val_loss`."
_MODE = "Whether less or more is better. auto: by the metric's name."
Mode = Literal["auto", "min", "max"]


class EarlyStopping(Section):
    """When training stops before its last epoch. The best weights are kept."""

    metric: Text = Field(default="val_loss", description=_METRIC)
    mode: Mode = Field(default="auto", description=_MODE)
    patience: Count = Field(
        default=3, description="Stop after this many epochs without a better value."
    )
    min_delta: NotNegative = Field(
        default=0.0, description="A change below this does not count as better."
    )


class ReduceOnPlateau(Section):
    """When the learning rate is reduced because a metric no longer improves."""

    metric: Text = Field(default="val_loss", description=_METRIC)
    mode: Mode = Field(default="auto", description=_MODE)
    patience: Count = Field(
        default=2, description="Reduce after this many epochs without a better value."
    )
    factor: Annotated[Number, Field(gt=0, lt=1)] = Field(
        default=0.2, description="Factor of the learning rate at each reduction."
    )
    min_delta: NotNegative = Field(
        default=0.0001, description="A change below this does not count as better."
    )
    cooldown: WholeNumber = Field(
        default=0, description="Epochs after a reduction in which none follows."
    )
    min_learning_rate: NotNegative = Field(
        default=0.0, description="Lower bound of the learning rate."
    )


class ClipGradients(Section):
    """How large gradients are cut. One key only."""

    norm: PositiveNumber | None = Field(
        default=None, description="Maximum norm of each weight's gradient."
    )
    global_norm: PositiveNumber | None = Field(
        default=None, description="Maximum norm of all gradients together."
    )
    value: PositiveNumber | None = Field(
        default=None, description="Maximum absolute value of each element."
    )


class Callback(Section):
    """A Keras callback of your own. `package.module:name` alone is short for it."""

    function: Text = Field(
        description="`package.module:name` of a class or a function that returns a "
        "`tf.keras.callbacks.Callback`."
    )
    params: Params = Field(default={}, description="Its arguments.")


CallbackSpec = Annotated[Callback, shorthand("function", Callback)]


class TensorBoard(Section):
    """What is written for TensorBoard besides the metrics of each epoch."""

    histograms: WholeNumber = Field(
        default=0,
        description="Histograms of the weights every so many epochs; 0: none.",
    )
    graph: Flag = Field(default=False, description="The model's graph.")
    images: WholeNumber = Field(
        default=0, description="Number of augmented training images to show."
    )
    profile: WholeNumber = Field(
        default=0, description="Number of steps to profile, from the tenth on."
    )


class FineTune(Section):
    """Which layers are trained. For pretrained models, or your own."""

    freeze: tuple[Text, ...] = Field(
        default=(),
        description="Names of layers that are not trained; `*` and `?` match as in "
        "file names, `backbone` stands for all layers of a pretrained model.",
    )
    unfreeze_after: Count | None = Field(
        default=None,
        description="Epochs after which the frozen layers are trained too, but for "
        "batch normalization, whose statistics stay as they are. null: never.",
    )
    learning_rate: PositiveNumber | None = Field(
        default=None,
        description="Constant learning rate from then on. null: a tenth of the first.",
    )


class Augment(Section):
    """Random changes of training images; a new draw for each image and epoch."""

    flip: Literal["horizontal", "vertical", "both"] | None = Field(
        default=None, description="Mirror half of the images."
    )
    rotate: Annotated[Number, Field(ge=0, le=180)] = Field(
        default=0.0, description="Rotate by up to so many degrees either way."
    )
    crop: Annotated[Number, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="Cut away up to this fraction of height and width, and enlarge the "
        "rest to the full size.",
    )
    brightness: Fraction = Field(
        default=0.0, description="Add up to so much either way, of a range of 1."
    )
    contrast: Fraction = Field(
        default=0.0, description="Change the contrast by up to this fraction."
    )
    saturation: Fraction = Field(
        default=0.0, description="Change the saturation by up to this fraction (RGB)."
    )
    cutout: Annotated[Number, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="Side of a gray square at a random place, as a fraction of the "
        "image's.",
    )


class Input(Section):
    """How examples reach the model."""

    cache: Literal["auto", "memory", "disk", "none"] = Field(
        default="auto",
        description="Where examples are kept after the first epoch, decoded but not "
        "augmented. auto: memory if they fill less than half of what is free; else "
        "none.",
    )
    shuffle_mb: Count = Field(
        default=256, description="Size of the shuffle buffer, in MB (1,000,000 bytes)."
    )
    augment: Augment = Augment.model_construct()


class Devices(Section):
    """How TensorFlow uses this machine's devices."""

    visible: tuple[WholeNumber, ...] | None = Field(
        default=None, description="Numbers of the GPUs to use. null: all."
    )
    memory_growth: Flag = Field(
        default=False,
        description="Whether GPU memory is taken as needed instead of all at once.",
    )
    memory_limit_mb: Count | None = Field(
        default=None, description="Memory of each GPU to use, in MB. null: all."
    )
    logical: Count | None = Field(
        default=None,
        description="Logical devices to divide each physical one into. null: 1.",
    )
    log_placement: Flag = Field(
        default=False,
        description="Whether the node's log says which device runs each operation.",
    )


class Train(Section):
    """How the model is trained."""

    epochs: Count = Field(
        default=10, description="Maximum number of passes over the train split."
    )
    batch_size: Count | None = Field(
        default=None,
        description="Examples per step over all replicas (the global batch size). "
        "null: 128, or what `batch_per_replica` says.",
    )
    batch_per_replica: Count | None = Field(
        default=None,
        description="Examples per step and replica, instead of `batch_size`.",
    )
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = Field(
        default=17, description="Seed of shuffling, initial weights and dropout."
    )
    deterministic: Flag = Field(
        default=False,
        description="Whether operations are slower but give the same result each time "
        "on the same device.",
    )
    optimizer: KerasSpec = Field(
        default=KerasObject.model_construct(class_name="Adam", params={}),
        description="A class of `tf.keras.optimizers`.",
    )
    learning_rate: LearningRate = Field(
        default=0.001, description="A number, or a schedule."
    )
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = Field(
        default="none",
        description="Multiply the learning rate by the number of replicas, or by its "
        "square root.",
    )
    clip_gradients: ClipGradients | None = Field(
        default=None, description="How large gradients are cut. null: not at all."
    )
    weight_decay: NotNegative = Field(
        default=0.0,
        description="Decoupled weight decay: this, times the learning rate, is the "
        "fraction of each weight that a step subtracts; not of biases and "
        "normalization. 0: the optimizer's own.",
    )
    loss: KerasSpec | None = Field(
        default=None,
        description="A class of `tf.keras.losses`. null: the cross-entropy that fits "
        "the number of classes.",
    )
    metrics: tuple[KerasSpec, ...] | None = Field(
        default=None,
        description="Classes of `tf.keras.metrics` to compute while training. null: "
        "accuracy, and for two classes AUC.",
    )
    class_weights: ClassWeights | None = Field(
        default=None,
        description="Weight of each class in training, 1 for those not named; "
        "`balanced`: inversely to its share. null: 1.",
    )
    sample_weight: Text | None = Field(
        default=None,
        description="A numeric feature with the weight of each example. null: 1.",
    )
    early_stopping: EarlyStopping | None = Field(
        default=None, description="When to stop early. null: train all epochs."
    )
    reduce_on_plateau: ReduceOnPlateau | None = Field(
        default=None, description="When to reduce the learning rate. null: never."
    )
    callbacks: tuple[CallbackSpec, ...] = Field(
        default=(), description="Keras callbacks of your own."
    )
    tensorboard: TensorBoard = TensorBoard.model_construct()
    warm_start: ProjectPath | None = Field(
        default=None,
        description="Weights to begin with: of the model that is `served`, of the "
        "`latest_blessed` or the `latest` one; or a path, of a SavedModel or a `.h5` "
        "file of weights, relative to the project root. null: the model's own.",
    )
    fine_tune: FineTune | None = Field(
        default=None, description="Which layers are trained. null: all."
    )
    input: Input = Input.model_construct()
    strategy: Literal[
        "auto",
        "one_device",
        "mirrored",
        "multi_worker",
        "tpu",
        "parameter_server",
        "central_storage",
    ] = Field(
        default="auto",
        description="How training is distributed. auto: `tpu` if there is one, else "
        "`multi_worker` if `TF_CONFIG` names workers, else `mirrored` over several "
        "GPUs, else `one_device`.",
    )
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = Field(
        default="float32",
        description="What layers compute in; weights and outputs stay float32.",
    )
    steps_per_execution: Count | None = Field(
        default=None,
        description="Steps that the device runs at a time. null: 1, on a TPU 50.",
    )
    replicas: Annotated[int, Field(strict=True, ge=2)] | None = Field(
        default=None,
        description="Mirrored training over so many logical devices of one physical "
        "device. null: one replica per device.",
    )
    processes: Annotated[int, Field(strict=True, ge=2)] | None = Field(
        default=None,
        description="Workers, each a process on this machine. null: one process.",
    )
    parameter_servers: Count | None = Field(
        default=None,
        description="Parameter servers, each a process on this machine, for `strategy: "
        "parameter_server`.",
    )
    devices: Devices = Devices.model_construct()
