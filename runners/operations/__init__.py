"""What a user can do with a pipeline: typed requests and results, no terminal."""
