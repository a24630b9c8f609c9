"""Beam's options that name the runners; it imports none of them.

They are in the code of nodes, whose cache keys the code of a runner is no part of.
"""

LOCAL_RUNNER = "--runner=sluice.beam_runner.LocalRunner"
ENGINE_RUNNER = "--runner=sluice.engine_runner.EngineRunner"
DATAFLOW_RUNNER = "--runner=DataflowRunner"

# With less data, a pipeline's messages and jobs take longer than what they save.
PARALLEL_FROM_BYTES = 40_000_000
