"""What is changed in libraries at run time, and what of their private parts is used.

There is a module per library. Each function says why it is needed, what it depends on
upstream, with which versions that was checked, and what happens without it; a test in
``tests/sluice/patches`` fails when a library has changed there. Ruff (SLF001) keeps
private names of libraries out of other modules. Modules import their library when a
function is called, but for ``tfma``, whose classes Beam pickles by name.

Classes that override private methods or attributes stand where they are used: TFX's
launcher in ``runners.local.node_launcher``, callbacks of Keras in
``pipeline.training.callbacks``.
"""
