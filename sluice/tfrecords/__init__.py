"""Reads and writes TFRecords and tf.Examples without TensorFlow."""
