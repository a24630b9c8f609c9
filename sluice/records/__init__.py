"""TFRecords, tf.Examples and what they hold, read without TensorFlow."""
