"""The local web server over the project's workspaces, ``sluice ui``."""
