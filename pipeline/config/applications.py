"""Models of ``tf.keras.applications`` and their parameters, without TensorFlow."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sluice.config_section import Count, Fraction, ProjectPath, Section

# The smallest image, height and width, that each takes.
APPLICATIONS = {
    **dict.fromkeys(
        """
        ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge
        DenseNet121 DenseNet169 DenseNet201
        EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4
        EfficientNetB5 EfficientNetB6 EfficientNetB7
        EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3
        EfficientNetV2L EfficientNetV2M EfficientNetV2S
        MobileNet MobileNetV2 MobileNetV3Large MobileNetV3Small
        NASNetLarge NASNetMobile
        RegNetX002 RegNetX004 RegNetX006 RegNetX008 RegNetX016 RegNetX032 RegNetX040
        RegNetX064 RegNetX080 RegNetX120 RegNetX160 RegNetX320
        RegNetY002 RegNetY004 RegNetY006 RegNetY008 RegNetY016 RegNetY032 RegNetY040
        RegNetY064 RegNetY080 RegNetY120 RegNetY160 RegNetY320
        ResNet101 ResNet101V2 ResNet152 ResNet152V2 ResNet50 ResNet50V2
        ResNetRS101 ResNetRS152 ResNetRS200 ResNetRS270 ResNetRS350 ResNetRS420
        ResNetRS50
        VGG16 VGG19
        """.split(),
        32,
    ),
    "InceptionResNetV2": 75,
    "InceptionV3": 75,
    "Xception": 71,
}


class ApplicationParams(Section):
    """``model_params`` of a model of ``tf.keras.applications``."""

    weights: ProjectPath | None = Field(
        default=None,
        description="A `.h5` file of weights as Keras publishes them, with or without "
        "the top, relative to the project root. null: random weights.",
    )
    pooling: Literal["avg", "max"] | None = Field(
        default="avg",
        description="Global pooling of the last feature map. null: it is flattened.",
    )
    head: tuple[Count, ...] = Field(
        default=(), description="Units of dense layers between pooling and output."
    )
    dropout: Annotated[Fraction, Field(lt=1)] = Field(
        default=0.0, description="Fraction dropped before the output layer."
    )
