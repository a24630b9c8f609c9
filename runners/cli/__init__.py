"""The ``sluice`` command: one module per verb, loaded when it is called."""
