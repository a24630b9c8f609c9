"""Reads TFRecords, tf.Examples and their values without TensorFlow."""
