#!/bin/sh
# Creates the project's virtual environment if needed, and prints its path.
#
#   setup/environment.sh [1.16|1.21]
#
# Without a version it is TFX 1.16, or 1.21 if there is no Python 3.10 but Python 3.12
# and glibc 2.39. Standard output is the path alone; messages go to standard error.
# Exits with 2, after one message, if something is missing.
#
# POSIX sh, because there may be no Python yet. It installs only what is in the lock file,
# with hashes checked; it never resolves, and it installs no system packages.
set -eu
CDPATH='' cd -- "$(dirname -- "$0")/.."
. setup/interpreters.sh
. setup/installer.sh

STAMP=set-up-of

main() {
    tfx=''
    problems=''
    require_platform
    case ${1:-} in
        '') choose_tfx ;;
        1.16) use_tfx_1_16 ;;
        1.21) use_tfx_1_21 ;;
        *)
            missing "TFX $1 is not one of the locked versions" \
                "make TFX=1.16 ..." "make TFX=1.21 ..."
            refuse
            ;;
    esac
    take_turns
    if ! is_current; then
        require_tools
        build
    fi
    echo "$venv"
}

use_tfx_1_16() { tfx=1.16 minor=3.10 glibc=2.28 venv=.venv; }
use_tfx_1_21() { tfx=1.21 minor=3.12 glibc=2.39 venv=.venv-1.21; }

choose_tfx() {
    use_tfx_1_16
    if is_current || find_python "$minor"; then return; fi
    sought="$LOOKED_AT"
    use_tfx_1_21
    if ! find_python "$minor"; then
        stand_in="none was found"
    elif ! has_glibc "$glibc"; then
        stand_in="found: $PYTHON) and glibc $glibc (here: ${glibc_here:-none}"
    else
        say "No Python 3.10 was found, so this is TFX 1.21 on Python $PYTHON_VERSION."
        return
    fi
    use_tfx_1_16
    missing "no Python 3.10 was found
    looked at: $sought
    TFX 1.21 cannot stand in: it needs Python 3.12 ($stand_in)" \
        "pyenv install 3.10" "uv python install 3.10" \
        "apt-get install python3.10-dev python3.10-venv   (Ubuntu 22.04)"
    require_compiler
    refuse
}

require_platform() {
    system=$(uname -s)
    machine=$(uname -m)
    glibc_here=$(getconf GNU_LIBC_VERSION 2>/dev/null) || glibc_here=''
    glibc_here=${glibc_here#glibc }
    if [ "$system-$machine" = Linux-x86_64 ] && [ -n "$glibc_here" ]; then return; fi
    [ -n "$glibc_here" ] || machine="$machine without glibc"
    missing "no wheels for $system on $machine: ml-metadata, tfx-bsl and \
tensorflow-data-validation come for Linux on x86_64 with glibc only" \
        "an x86-64 Linux container or virtual machine (Debian 12, Ubuntu 22.04 or later)"
    refuse
}

# What the build needs; everything missing is reported at once.
require_tools() {
    if ! has_glibc "$glibc"; then
        set -- "a container or virtual machine with Debian 13 or Ubuntu 24.04, or later"
        [ "$tfx" = 1.16 ] || set -- "make TFX=1.16 ...   (glibc 2.28, Python 3.10)" "$@"
        missing "TFX $tfx's wheels need glibc $glibc or later; here it is $glibc_here" "$@"
    fi
    if ! find_python "$minor"; then
        missing "no Python $minor was found
    looked at: $LOOKED_AT" \
            "pyenv install $minor" "uv python install $minor" \
            "apt-get install python$minor-dev python$minor-venv   (where packaged)"
    elif ! [ -f "$PYTHON_HEADER" ]; then
        missing "$PYTHON has no C headers, which pyfarmhash is built with
    expected: $PYTHON_HEADER" \
            "apt-get install python$minor-dev" "pyenv install $minor"
    fi
    require_compiler
    [ -z "$problems" ] || refuse
}

require_compiler() {
    compiler=${CXX:-g++}
    command -v "${compiler%% *}" >/dev/null || missing \
        "no C++ compiler: $compiler is not on PATH, and pyfarmhash comes as source" \
        "apt-get install g++"
}

has_glibc() {
    [ "$(printf '%s\n' "$1" "$glibc_here" | sort -V | head -n 1)" = "$1" ]
}

# Two simultaneous setups would write to one directory. The kernel frees the lock with
# the last process that holds it: after a kill, the next setup waits for an install that
# is still running.
take_turns() {
    command -v flock >/dev/null || return 0
    exec 9<.
    flock --nonblock 9 || {
        say "Another setup is running here; waiting for it."
        flock 9
    }
}

# The stamp is written last, so an incomplete environment has none. It names the path,
# because an environment that was moved or copied does not work.
is_current() {
    wanted=$({ cat "requirements/tfx-$tfx.txt" "requirements/dev-$tfx.txt" setup.py \
        setup/*.sh && pwd; } | sha256sum)
    [ "$(cat "$venv/$STAMP" 2>/dev/null)" = "$wanted" ] &&
        "$venv/bin/python" -c '' 2>/dev/null
}

build() {
    say "Setting up $venv: TFX $tfx on Python $PYTHON_VERSION ($PYTHON)." \
        "About a minute on a fast line."
    trap discard EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    rm -rf "$venv"
    install_packages
    echo "$wanted" >"$venv/$STAMP"
    trap - EXIT
}

# Source-only packages are built with the locked setuptools, not with one that build
# isolation would fetch unchecked: so it is installed first, alone.
install_packages() {
    lock=requirements/tfx-$tfx.txt
    "$PYTHON" -m venv --without-pip "$venv" || exit 2
    provide_uv "$PYTHON" "$venv/uv" || exit 2
    awk '/^setuptools==/ { keep = 1 } keep; !/\\$/ { keep = 0 }' "$lock" \
        >"$venv/setuptools.txt"
    uv_install --require-hashes --requirement "$venv/setuptools.txt"
    uv_install --require-hashes --requirement "$lock" \
        --requirement "requirements/dev-$tfx.txt" --no-build-isolation
    uv_install --editable . --no-deps --no-build-isolation --offline
    rm -rf "$venv/uv" "$venv/setuptools.txt"
    compile_bytecode
}

# Python caches the bytecode of what it imports, which halves the start of TFX (10 s less)
# and of every command (0.2 s less). PYTHONDONTWRITEBYTECODE, often set unnoticed, forbids
# that: so it is done once here, for the installed packages that every run imports, and
# not for the project.
compile_bytecode() {
    site=$(echo "$venv"/lib/python3*/site-packages)
    for name in annotated_types click google_crc32c pydantic rich ruamel; do
        "$venv/bin/python" -m compileall -q "$site/$name" >/dev/null 2>&1 || true
    done
    env -u PYTHONDONTWRITEBYTECODE TF_CPP_MIN_LOG_LEVEL=3 "$venv/bin/python" -c '
import tfx.components, tfx.orchestration.portable.launcher
' >/dev/null 2>&1 || true
}

uv_install() {
    "$UV" pip install --quiet --python "$venv/bin/python" "$@" >&2 || exit 2
}

discard() {
    rm -rf "$venv"
    say "sluice: the setup did not finish; the partial $venv was removed." \
        "Run the same command again."
}

say() { echo "$*" >&2; }

# missing WHAT WAY-OUT...: keeps a problem for `refuse`.
missing() {
    problems="$problems
  $1
    try:"
    shift
    for way_out in "$@"; do
        problems="$problems
      $way_out"
    done
    problems="$problems
"
}

refuse() {
    say "sluice: cannot set up${tfx:+ TFX $tfx} here
$problems
Then run the same command again; nothing was changed."
    exit 2
}

main "$@"
