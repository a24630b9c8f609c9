#!/bin/sh
# Creates .venv from the lock files unless it is up to date, and prints its path.
#
#   setup/environment.sh [1.16|1.21]
#
# Without a version: the one that is installed, or the newest TFX that this machine can
# run. Messages go to standard error. Nothing is installed but what the lock files name.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/uv.sh

stamp=.venv/set-up-of

main() {
    installed=$(sed -n 's/^tfx //p' $stamp 2>/dev/null) || true
    choices=${1:-${installed:-$(runnable)}}
    [ -f "requirements/tfx-${choices%% *}.txt" ] || die "TFX ${choices%% *} has no lock file"
    exec 9<. # Two setups at the same time would write into one directory.
    flock 9 2>/dev/null || true
    for tfx in $choices; do
        if [ "$(cat $stamp 2>/dev/null)" = "$(wanted)" ]; then
            echo .venv
            return
        fi
    done
    require_platform
    provide_uv
    for tfx in $choices; do
        if [ "$tfx" = "$installed" ] || make_venv; then
            install_packages
            echo .venv
            return
        fi
    done
    exit 2
}

runnable() {
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
    oldest=$(printf '%s\n' 2.39 "${glibc:-0}" | sort -V | head -n 1)
    if [ "$oldest" = 2.39 ]; then echo "1.21 1.16"; else echo 1.16; fi
}

# Written last, so an incomplete environment has none. It has the path in it, because a
# moved environment does not work.
wanted() {
    echo "tfx $tfx"
    {
        cat "requirements/tfx-$tfx.txt" "requirements/dev-$tfx.txt" setup.py
        pwd
    } | sha256sum
}

require_platform() {
    [ "$(uname -sm)" = "Linux x86_64" ] ||
        die "TFX has wheels for Linux on x86-64 only; here is $(uname -sm)"
    compiler=${CXX:-g++}
    command -v "${compiler%% *}" >/dev/null ||
        die "no C++ compiler for pyfarmhash: apt-get install g++"
}

die() {
    echo "sluice: cannot set up: $1" >&2
    exit 2
}

make_venv() {
    case $tfx in 1.16) minor=3.10 ;; *) minor=3.12 ;; esac
    echo "Setting up .venv: TFX $tfx on Python $minor, about a minute." >&2
    rm -rf .venv
    "$UV" venv --quiet --python $minor .venv >&2
}

# Packages that come as source are built with the locked setuptools, not with one that
# is fetched unchecked: so it is installed first.
install_packages() {
    rm -f $stamp
    lock=requirements/tfx-$tfx.txt
    awk '/^setuptools==/ { keep = 1 } keep; !/\\$/ { keep = 0 }' "$lock" |
        uv_pip install --require-hashes --requirement -
    uv_pip sync --require-hashes --no-build-isolation "$lock" \
        "requirements/dev-$tfx.txt"
    uv_pip install --editable . --no-deps --no-build-isolation --offline
    compile_bytecode
    wanted >$stamp
}

uv_pip() {
    action=$1
    shift
    "$UV" pip "$action" --quiet --python .venv/bin/python "$@" >&2 || exit 2
}

# Bytecode halves the start of TFX and saves each command 0.2 s. It is written here once,
# since PYTHONDONTWRITEBYTECODE, often set unnoticed, keeps Python from doing so.
compile_bytecode() {
    # On two cores: whole packages here, and all that TFX imports below. The import comes
    # to TensorFlow's ops late, so they are compiled first here.
    (
        CDPATH='' cd -- .venv/lib/python3*/site-packages
        ../../../bin/python -m compileall -q annotated_types click google_crc32c \
            pydantic rich ruamel tensorflow/python/ops tensorflow/python scipy \
            kubernetes tf_keras keras
    ) >/dev/null 2>&1 9<&- &
    env -u PYTHONDONTWRITEBYTECODE TF_CPP_MIN_LOG_LEVEL=3 .venv/bin/python -c '
import tfx.components, tfx.orchestration.portable.launcher
' >/dev/null 2>&1 || true
    wait
}

main "$@"
