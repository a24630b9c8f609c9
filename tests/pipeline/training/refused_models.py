"""Models of a user, most of which a TPU refuses; copied into a temporary project."""

import tensorflow as tf

L = tf.keras.layers


def model_of(*layers):
    """Returns a function that builds a model of layers in a row."""

    def build(inputs, params):
        features = inputs.keras_inputs()
        x = L.Dense(4, name="first")(features["x_xf"])
        for layer in layers:
            x = layer()(x)
        return tf.keras.Model(features, inputs.output_layer()(x))

    return build


class Texts(tf.keras.layers.Layer):
    def call(self, x):
        text = tf.strings.as_string(x)
        return x + tf.strings.to_number(text)


class Python(tf.keras.layers.Layer):
    def call(self, x):
        return tf.ensure_shape(tf.py_function(tf.abs, [x], tf.float32), x.shape)


class Prints(tf.keras.layers.Layer):
    def call(self, x):
        tf.print(tf.reduce_mean(x))
        return x


class Looks(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.ids = L.IntegerLookup(vocabulary=[1, 2, 3])

    def call(self, x):
        return x + tf.cast(self.ids(tf.cast(x, tf.int64)), tf.float32)


class Raises(tf.keras.layers.Layer):
    def call(self, x):
        return tf.matmul(x, tf.ones([5, 5]))


class Trains(tf.keras.Model):
    def train_step(self, data):
        raise NotImplementedError("no training yet")


texts, python, prints = model_of(Texts), model_of(Python), model_of(Prints)
looks, raises = model_of(Looks), model_of(Raises)


def recurrent(inputs, params):
    features = inputs.keras_inputs()
    x = L.Reshape((4, 2))(L.BatchNormalization()(L.Dense(8)(features["x_xf"])))
    x = L.Dropout(0.1)(L.GRU(4)(x))
    return tf.keras.Model(features, inputs.output_layer()(x))


def does_not_train(inputs, params):
    features = inputs.keras_inputs()
    return Trains(features, inputs.output_layer()(features["x_xf"]))


def sparse(inputs, custom_config):
    """Preprocessing that returns a sparse feature."""
    return {"x_xf": tf.sparse.from_dense(inputs["x"]), "y_xf": inputs["y"]}
