"""What a pipeline is: its config, its graph, its preprocessing, models and training."""
