"""Config section ``train``: how the model is trained, on which hardware.

Names of optimizers, losses, metrics and callbacks are those of Keras. Everything that
counts passes over the data is in epochs, so that another batch size does not change its
meaning.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

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
    refuse,
    shorthand,
)
from sluice.errors import NodeError
from sluice.metrics import direction_of

DEFAULT_BATCH_SIZE = 128
# A TPU pads the batch of each core to a multiple of 8
# (cloud.google.com/tpu/docs/performance-guide).
TPU_MULTIPLE = 8


class KerasObject(Section):
    """A class of Keras with its arguments; `NAME` is short for `{class: NAME}`."""

    model_config = ConfigDict(populate_by_name=True)

    class_name: Text = Field(alias="class")
    """Name of the class, such as `Adam` or `AUC`."""
    params: Params = {}
    """Arguments of the class."""


KerasSpec = Annotated[KerasObject, shorthand("class", KerasObject)]

# Models that `warm_start` finds; anything else is a path.
TRAINED_BEFORE = ("served", "latest_blessed", "latest")

ClassWeights = Annotated[
    Annotated[Literal["balanced"], Tag("name")]
    | Annotated[NotEmpty[dict[str | int, NotNegative]], Tag("mapping")],
    Discriminator(lambda value: "mapping" if isinstance(value, dict) else "name"),
]


class Watching(Section):
    """A metric of the history."""

    metric: Text = "val_loss"
    """What is watched, by its name in the history, such as `val_loss`."""
    mode: Literal["auto", "min", "max"] = "auto"
    """Whether less or more is better. auto: by the metric's name."""

    @model_validator(mode="after")
    def _has_direction(self) -> Watching:
        if self.mode == "auto" and direction_of(self.metric) is None:
            what = f"whether more or less of {self.metric!r} is better is not known"
            refuse(f"{what}: write mode: min or max", "metric")
        return self


class EarlyStopping(Watching):
    """Early stopping, which keeps the best weights."""

    patience: Count = 3
    """Stop after this many epochs without a better value."""
    min_delta: NotNegative = 0.0
    """A change below this does not count as better."""


class ReduceOnPlateau(Watching):
    """A reduction of the learning rate once a metric no longer improves."""

    patience: Count = 2
    """Reduce after this many epochs without a better value."""
    factor: Annotated[Number, Field(gt=0, lt=1)] = 0.2
    """Factor of the learning rate at each reduction."""
    min_delta: NotNegative = 0.0001
    """A change below this does not count as better."""
    cooldown: WholeNumber = 0
    """Epochs after a reduction in which none follows."""
    min_learning_rate: NotNegative = 0.0
    """Lower bound of the learning rate."""


class ClipGradients(Section):
    """A limit of the gradients, by one key only."""

    norm: PositiveNumber | None = None
    """Maximum norm of each weight's gradient."""
    global_norm: PositiveNumber | None = None
    """Maximum norm of all gradients together."""
    value: PositiveNumber | None = None
    """Maximum absolute value of each element."""

    @model_validator(mode="after")
    def _one_key(self) -> ClipGradients:
        if len(self.model_dump(exclude_none=True)) != 1:
            refuse("gradients are clipped by one of norm, global_norm and value")
        return self


class Callback(Section):
    """`package.module:name` alone is short for its `function`."""

    function: Text
    """`package.module:name` of a class or a function that returns a
    `tf.keras.callbacks.Callback`."""
    params: Params = {}
    """Its arguments."""


CallbackSpec = Annotated[Callback, shorthand("function", Callback)]


class TensorBoard(Section):
    """What is written for TensorBoard besides the metrics of each epoch."""

    histograms: WholeNumber = 0
    """Histograms of the weights every so many epochs; 0: none."""
    graph: Flag = False
    """The model's graph."""
    images: WholeNumber = 0
    """Number of augmented training images to show."""
    profile: WholeNumber = 0
    """Number of steps to profile, from the tenth on."""


class FineTune(Section):
    """Fine-tuning of a pretrained model, or of one of your own."""

    freeze: NotEmpty[tuple[Text, ...]]
    """Names of layers that are not trained; `*` and `?` match as in file names,
    `backbone` stands for all layers of a pretrained model."""
    unfreeze_after: Count | None = None
    """Epochs after which the frozen layers are trained too, but for batch
    normalization, whose statistics stay as they are. null: never."""
    learning_rate: PositiveNumber | None = None
    """Constant learning rate from then on. null: a tenth of the first."""

    @model_validator(mode="after")
    def _rate_after_unfreezing(self) -> FineTune:
        if self.learning_rate is not None and self.unfreeze_after is None:
            refuse(
                "this is the learning rate after unfreezing, which never happens "
                "without unfreeze_after",
                "learning_rate",
            )
        return self


class Augment(Section):
    """Random changes of training images; a new draw for each image and epoch."""

    flip: Literal["horizontal", "vertical", "both"] | None = None
    """Mirror half of the images."""
    rotate: Annotated[Number, Field(ge=0, le=180)] = 0.0
    """Rotate by up to so many degrees either way."""
    crop: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    """Cut away up to this fraction of height and width, and enlarge the rest to the
    full size."""
    brightness: Fraction = 0.0
    """Add up to so much either way, of a range of 1."""
    contrast: Fraction = 0.0
    """Change the contrast by up to this fraction."""
    saturation: Fraction = 0.0
    """Change the saturation by up to this fraction (RGB)."""
    cutout: Annotated[Number, Field(ge=0, lt=1)] = 0.0
    """Side of a gray square at a random place, as a fraction of the image's."""


class Input(Section):
    """How examples reach the model."""

    cache: Literal["auto", "memory", "none"] = "auto"
    """Whether examples are kept in memory, decoded but not augmented. auto: if they
    fill less than a third of what is free."""
    shuffle_mb: Count = 256
    """Size of the shuffle buffer, in MB (1,000,000 bytes)."""
    augment: Augment = Augment.model_construct()


class Devices(Section):
    """How TensorFlow uses this machine's devices."""

    visible: tuple[WholeNumber, ...] | None = None
    """Numbers of the GPUs to use. null: all."""
    memory_growth: Flag = False
    """Whether GPU memory is taken as needed instead of all at once."""
    memory_limit_mb: Count | None = None
    """Memory of each GPU to use, in MB. null: all."""

    @model_validator(mode="after")
    def _memory(self) -> Devices:
        if self.memory_growth and self.memory_limit_mb:
            refuse(
                "GPU memory cannot both grow and be limited: remove this key or "
                "memory_limit_mb",
                "memory_growth",
            )
        return self


class Train(Section):
    """How the model is trained."""

    epochs: Annotated[Count, Field(le=1_000_000)] = 10
    """Maximum number of passes over the train split."""
    batch_size: Count | None = None
    """Examples per step over all replicas (the global batch size). null: 128, or what
    `batch_per_replica` says."""
    batch_per_replica: Count | None = None
    """Examples per step and replica, instead of `batch_size`."""
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 17
    """Seed of shuffling, initial weights and dropout."""
    deterministic: Flag = False
    """Whether operations are slower but give the same result each time on the same
    device."""
    optimizer: KerasSpec = KerasObject.model_construct(class_name="Adam", params={})
    """From `tf.keras.optimizers`."""
    learning_rate: LearningRate = 0.001
    """A number, or a schedule."""
    learning_rate_scaling: Literal["none", "linear", "sqrt"] = "none"
    """Multiply the learning rate by the number of replicas, or by its square root."""
    clip_gradients: ClipGradients | None = None
    """null: gradients are not cut."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay: this, times the learning rate, is the fraction of each
    weight that a step subtracts; not of biases and normalization. 0: the optimizer's
    own."""
    loss: KerasSpec | None = None
    """From `tf.keras.losses`; for a regression it is computed on z-scores of the label,
    whatever its unit. null: the cross-entropy that fits the number of classes; for a
    regression `MeanSquaredError`."""
    metrics: tuple[KerasSpec, ...] | None = None
    """From `tf.keras.metrics`, computed while training, or your own,
    `package.module:Class`, which are given class ids. null: accuracy, and for two
    classes or several labels AUC; for a regression mean absolute and root mean squared
    error, in the label's unit."""
    class_weights: ClassWeights | None = None
    """Weight of each class in training, 1 for those not named; `balanced`: inversely to
    its share. Validation and evaluation do not count it. null: 1."""
    sample_weight: Text | None = None
    """A numeric feature with the weight of each example, in training, evaluation and
    model gate; the Evaluator reads it from the records. null: 1."""
    early_stopping: EarlyStopping | None = None
    """null: train all epochs."""
    reduce_on_plateau: ReduceOnPlateau | None = None
    """null: never."""
    callbacks: tuple[CallbackSpec, ...] = ()
    """Keras callbacks of your own."""
    tensorboard: TensorBoard = TensorBoard.model_construct()
    warm_start: ProjectPath | None = None
    """Weights to begin with: of the model that is `served`, of the `latest_blessed` or
    the `latest` one; or a path, of a SavedModel or a `.h5` file of weights, relative to
    the project root. null: the model's own."""
    fine_tune: FineTune | None = None
    """null: all layers are trained."""
    input: Input = Input.model_construct()
    strategy: Literal[
        "auto",
        "one_device",
        "mirrored",
        "multi_worker",
        "tpu",
        "parameter_server",
        "central_storage",
    ] = "auto"
    """How training is distributed. auto: the first that fits the hardware, see
    [training.md](training.md#strategies)."""
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """What layers compute in; weights and outputs stay float32."""
    steps_per_execution: Count | None = None
    """Steps that the device runs at a time. null: 1, on a TPU 50."""
    replicas: Annotated[int, Field(strict=True, ge=2)] | None = None
    """Training over so many logical devices of one physical device, mirrored or with
    central storage. null: one replica per device."""
    processes: Annotated[int, Field(strict=True, ge=2)] | None = None
    """Workers, each a process on this machine. null: one process."""
    parameter_servers: Count | None = None
    """Parameter servers, each a process on this machine, for `strategy:
    parameter_server`."""
    devices: Devices = Devices.model_construct()

    @model_validator(mode="after")
    def _fits_together(self) -> Train:
        after = self.fine_tune.unfreeze_after if self.fine_tune else None
        if after is not None and after >= self.epochs:
            text = f"of {self.epochs} epochs none is left after the layers are unfrozen"
            refuse(text, "fine_tune", "unfreeze_after")
        strategy, has_servers = self.strategy, self.strategy == "parameter_server"
        takes_replicas = ("auto", "mirrored", "central_storage")
        if self.replicas and strategy not in takes_replicas:
            refuse(f"the strategy {strategy} takes no number of replicas", "replicas")
        if self.replicas and self.processes:
            refuse("processes and replicas exclude each other", "processes")
        several = ("auto", "multi_worker", "parameter_server")
        if self.processes and strategy not in several:
            refuse(f"the strategy {strategy} trains in one process", "processes")
        if has_servers and self.processes and not self.parameter_servers:
            text = "the strategy parameter_server needs train.parameter_servers"
            refuse(text, "processes")
        if self.parameter_servers and not (self.processes and has_servers):
            text = "these need train.strategy: parameter_server and train.processes"
            refuse(text, "parameter_servers")
        if (strategy, self.precision) == ("central_storage", "mixed_float16"):
            text = "Keras cannot scale the loss of mixed_float16 with central storage"
            refuse(text, "precision")
        rate = self.learning_rate
        is_schedule = not isinstance(rate, float) and (
            rate.kind != "constant" or rate.warmup_epochs
        )
        if self.reduce_on_plateau and is_schedule:
            text = "Keras cannot reduce a learning rate that a schedule sets"
            refuse(text, "reduce_on_plateau")
        return self

    @model_validator(mode="after")
    def _batch_is_divisible(self) -> Train:
        if self.batch_size and self.batch_per_replica:
            refuse("the batch size is given twice: see batch_size", "batch_per_replica")
        # Workers of parameter servers have no part in a batch.
        workers = None if self.strategy == "parameter_server" else self.processes
        multiple = TPU_MULTIPLE if self.strategy == "tpu" else 1
        try:
            self.global_batch_size(self.replicas or workers or 1, multiple)
        except NodeError as error:
            key = "batch_per_replica" if self.batch_per_replica else "batch_size"
            refuse(f"{error.what}; try {error.hint}", key)
        return self

    def global_batch_size(self, replicas: int, multiple: int = 1) -> int:
        """Returns the number of examples per step over all replicas.

        The batch of each replica must be a multiple of ``multiple``.

        Raises:
          NodeError: the batch cannot be divided so; it names the nearest sizes.
        """
        key, size = "batch_size", self.batch_size or DEFAULT_BATCH_SIZE
        divisor = replicas * multiple
        if self.batch_per_replica is not None:
            key, size, divisor = "batch_per_replica", self.batch_per_replica, multiple
        if size % divisor:
            nearest = (size // divisor * divisor, -(-size // divisor) * divisor)
            raise NodeError(
                f"train.{key} {size} is not a multiple of {divisor}",
                where=f"train.{key}",
                hint=" or ".join(f"train.{key}={n}" for n in nearest if n),
            )
        return size if key == "batch_size" else size * replicas
