#!/bin/sh
# Resolves the locks again from requirements/*.in: `make lock`.
#
# Each is resolved as of a fixed date, for a fixed platform, so the same inputs give the
# same lock on every machine, whatever its own Python is. No lock names an index.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/interpreters.sh
. setup/installer.sh

main() {
    find_python 3.10 || find_python 3.12 || {
        echo "sluice: resolving needs a Python 3.10 or 3.12 (try: pyenv install 3.10)" >&2
        exit 2
    }
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    provide_uv "$PYTHON" "$scratch/uv" || exit 2

    # Early 2025: resolved freely, TFX 1.16 takes a Beam without dill and breaks at import.
    resolve_tfx 1.16 2025-02-01 --python-version 3.10 \
        --python-platform x86_64-manylinux_2_28
    resolve_tfx 1.21 2026-10-01 --python-version 3.12 \
        --python-platform x86_64-manylinux_2_39
    resolve uv 2026-10-01 --python-version 3.10 --universal requirements/uv.in
}

# resolve_tfx VERSION DATE OPTION...: what a pipeline needs, and in locks beside it only
# what tools and TensorFlow's support of GPUs add. Images are built without the tools.
resolve_tfx() {
    tfx=$1
    date=$2
    shift 2
    set -- "$date" "$@"
    resolve "tfx-$tfx" "$@" "requirements/tfx-$tfx.in"
    has=$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' \
        "requirements/tfx-$tfx.txt")
    # shellcheck disable=SC2086
    set -- "$@" --constraint "requirements/tfx-$tfx.txt" $has
    resolve "dev-$tfx" "$@" requirements/dev.in
    resolve "gpu-$tfx" "$@" requirements/gpu.in
}

# resolve NAME DATE OPTION...: the old lock stays until the new one is whole.
resolve() {
    name=$1
    date=$2
    shift 2
    "$UV" pip compile --quiet --generate-hashes --exclude-newer "$date" "$@" \
        --custom-compile-command "make lock" --output-file "$scratch/$name.txt"
    cat "$scratch/$name.txt" >"requirements/$name.txt"
    echo "requirements/$name.txt" >&2
}

main
