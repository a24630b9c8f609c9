# Image of a pipeline's nodes, of the files that `sluice image --write` selects, or by hand from here:
#
#   docker build --tag sluice .
#
# For another version or for GPUs, `sluice image` writes other arguments.
ARG BASE=python:3.10-slim-bookworm
ARG BEAM=apache/beam_python3.10_sdk:2.62.0
ARG TFX=1.16
ARG GPU=

FROM ${BEAM} AS beam

FROM ${BASE} AS build
ARG TFX
ARG GPU
# pyfarmhash comes as source only.
RUN apt-get update && apt-get install --yes --no-install-recommends g++
WORKDIR /opt/sluice
COPY requirements requirements
RUN python -m venv --without-pip venv
RUN python -m pip install --quiet --require-hashes --target uv \
    --requirement requirements/uv.txt
# Source-only packages are built with the locked setuptools.
RUN awk '/^setuptools==/ { keep = 1 } keep; !/\\$/ { keep = 0 }' \
    requirements/tfx-${TFX}.txt >requirements/setuptools.txt
RUN uv/bin/uv pip install --quiet --python venv/bin/python \
    --require-hashes --requirement requirements/setuptools.txt
RUN uv/bin/uv pip install --quiet --python venv/bin/python \
    --require-hashes --requirement requirements/tfx-${TFX}.txt \
    ${GPU:+--requirement requirements/gpu-${TFX}.txt} --no-build-isolation
# Headers for custom ops, a quarter of the environment.
RUN rm -r venv/lib/python3*/site-packages/tensorflow/include
# Writes the bytecode, which the nodes' user cannot: TFX starts in half the time.
RUN venv/bin/python -c 'import tfx.components, \
    tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor'

FROM ${BASE}
RUN useradd --create-home --uid 1000 sluice
# Dataflow's workers start with it.
COPY --from=beam /opt/apache/beam /opt/apache/beam
COPY --from=build /opt/sluice/venv /opt/sluice/venv
# CUDA's libraries, where the lock has them.
RUN ls -d /opt/sluice/venv/lib/python3*/site-packages/nvidia/*/lib \
    >/etc/ld.so.conf.d/cuda.conf 2>/dev/null; ldconfig
COPY . /opt/sluice/app
RUN /opt/sluice/venv/bin/python -m compileall -q /opt/sluice/app
# The user's own packages are in project/ where they are not beside Sluice's.
ENV PYTHONPATH=/opt/sluice/app:/opt/sluice/app/project
ENV PATH=/opt/sluice/venv/bin:$PATH
# As in local runs: sluice/compat.py.
ENV TF_USE_LEGACY_KERAS=1 TF_CPP_MIN_LOG_LEVEL=2
# Where Google's machines mount the GPU's driver.
ENV LD_LIBRARY_PATH=/usr/local/nvidia/lib64
USER 1000
WORKDIR /home/sluice
# The services name the whole command; Dataflow gives only options, for Beam.
ENTRYPOINT ["sh", "-c", "case $1 in --*) set -- /opt/apache/beam/boot \"$@\" ;; esac; exec \"$@\"", "sh"]
