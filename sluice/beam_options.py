"""Beam's options that name our runners; it imports neither of them.

They are in the code of nodes, whose cache keys the code of a runner is no part of.
"""

LOCAL_RUNNER = "--runner=sluice.beam_runner.LocalRunner"
ENGINE_RUNNER = "--runner=sluice.engine_runner.EngineRunner"
