"""How a pipeline is executed: the command line and the local runner."""
