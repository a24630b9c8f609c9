"""Runs a pipeline on this machine, over TFX's portable launcher.

``run`` executes in this process. The command line calls it in a child process
(``child_process``), so that TensorFlow's output stays out of the terminal and a crash
of a node is an event, not the end of the program.
"""
