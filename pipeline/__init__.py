"""Definition of a pipeline: config, graph, preprocessing, models and training."""
