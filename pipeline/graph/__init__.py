"""Graph of a pipeline: its nodes, validated and built as TFX components.

``node_registry`` lists the nodes, ``arguments`` builds their arguments from the config,
``custom_nodes`` adds the user's own and checks the graph without TFX, ``check_objects``
checks what the config names with Keras and TFMA. ``choose_spans`` selects
the data of a run. ``create_pipeline`` builds it.
"""
