#!/bin/sh
# Resolves the lock files from requirements/*.in: `make lock`.
#
# Each is resolved as of a fixed date, for a fixed platform, so the same inputs give the
# same lock on every machine. No lock names an index.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/uv.sh

# resolve_tfx VERSION DATE PYTHON GLIBC: what a pipeline needs, and in locks beside it
# only what tools and TensorFlow's support of GPUs add. Images are built without the tools.
resolve_tfx() {
    resolve "tfx-$1" "$2" "requirements/tfx-$1.in" --python-version "$3" \
        --python-platform "x86_64-manylinux_$4" --exclude-newer-package "$newer"
    has=$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' \
        "requirements/tfx-$1.txt")
    for kind in dev gpu; do
        # shellcheck disable=SC2086
        resolve "$kind-$1" "$2" requirements/$kind.in --python-version "$3" \
            --python-platform "x86_64-manylinux_$4" \
            --constraint "requirements/tfx-$1.txt" $has \
            --exclude-newer-package "$newer"
    done
}

# resolve NAME DATE INPUT OPTION...: the old lock stays until the new one is whole.
resolve() {
    name=$1 date=$2
    shift 2
    "$UV" pip compile --quiet --generate-hashes --exclude-newer "$date" "$@" \
        --custom-compile-command "make lock" --output-file "requirements/.$name"
    mv "requirements/.$name" "requirements/$name.txt"
}

provide_uv
# The one package that TFX 1.16 needs newer, see its .in file.
newer=keras=2026-10-01
# Early 2025: resolved freely, TFX 1.16 takes a Beam without dill and breaks at import.
resolve_tfx 1.16 2025-02-01 3.10 2_28
resolve_tfx 1.21 2026-10-01 3.12 2_39
# For the Python of either TFX.
resolve tfjs 2026-10-01 requirements/tfjs.in --python-version 3.10 --universal \
    --override requirements/tfjs-override.in
resolve airflow 2026-10-01 requirements/airflow.in --python-version 3.10 --universal
resolve uv 2026-10-01 requirements/uv.in --python-version 3.10 --universal
