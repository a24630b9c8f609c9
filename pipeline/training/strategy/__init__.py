"""How a training is distributed: which strategy, on which devices and processes."""
