#!/bin/sh
# Generates sluice/tfrecords/tf_example_pb2.py from the .proto beside it: `make protos`.
#
# protoc 21: what it writes loads under the protobuf of both locks, 3.20 and 6.33. What
# newer ones write refuses an older protobuf.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/uv.sh

provide_uv
"$UV" run --no-project --python 3.10 --with grpcio-tools==1.49.1 \
    --with 'setuptools<70' python -m grpc_tools.protoc --proto_path=. --python_out=. \
    sluice/tfrecords/tf_example.proto
