#!/bin/sh
# Generates sluice/tfrecords/tf_example_pb2.py from the .proto beside it: `make protos`.
#
# protoc 21: what it writes loads under the protobuf of both locks, 3.20 and 6.33. What
# newer ones write refuses an older protobuf.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/interpreters.sh
. setup/installer.sh

find_python 3.10 || {
    echo "sluice: grpcio-tools 1.49 wants a Python 3.10 (try: pyenv install 3.10)" >&2
    exit 2
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
provide_uv "$PYTHON" "$scratch/uv" || exit 2
"$UV" run --no-project --python "$PYTHON" --with grpcio-tools==1.49.1 \
    --with 'setuptools<70' python -m grpc_tools.protoc --proto_path=. --python_out=. \
    sluice/tfrecords/tf_example.proto
