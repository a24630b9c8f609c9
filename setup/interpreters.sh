# Finds a Python that can build the environment. Sourced by the other setup scripts.
# shellcheck shell=sh disable=SC2034
#
# Three places are searched: PATH, pyenv's versions (also those that are not activated,
# whose shims on PATH exist and fail), and uv's own. A candidate counts only if it runs.

# Prints version, base interpreter (not the virtual environment it may stand in, nor a
# link to it: an environment made through one takes another prefix, from 3.11 on) and
# the path where its C headers belong.
INTERPRETER_FACTS='
import os, platform, sys, sysconfig
print(platform.python_version())
print(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
print(os.path.join(sysconfig.get_path("include"), "Python.h"))
'

# find_python MINOR: sets PYTHON, PYTHON_VERSION and PYTHON_HEADER. A Python with its
# headers is preferred to an earlier one without. Returns 1 where none runs; LOOKED_AT
# then lists where it was searched.
find_python() {
    PYTHON=''
    LOOKED_AT=''

    on_path=$(command -v "python$1") || on_path=''
    pyenv_versions=${PYENV_ROOT:-${HOME:-}/.pyenv}/versions
    if [ -z "$on_path" ]; then
        LOOKED_AT="python$1 on PATH (none)"
    elif consider "$on_path" "$1"; then
        return 0
    else
        LOOKED_AT="python$1 on PATH ($on_path does not run)"
    fi

    for candidate in "$pyenv_versions/$1".*/bin/"python$1"; do
        if [ -x "$candidate" ] && consider "$candidate" "$1"; then return 0; fi
    done
    LOOKED_AT="$LOOKED_AT, $pyenv_versions/$1.* (none)"

    if ! command -v uv >/dev/null; then
        LOOKED_AT="$LOOKED_AT, uv python find $1 (no uv on PATH)"
    elif consider "$(find_python_of_uv "$1")" "$1"; then
        return 0
    else
        LOOKED_AT="$LOOKED_AT, uv python find $1 (none)"
    fi
    [ -n "$PYTHON" ]
}

find_python_of_uv() {
    UV_PYTHON_DOWNLOADS=never uv python find --system --no-project "$1" 2>/dev/null
}

# consider CANDIDATE MINOR: returns 0 if the search can end with this one.
consider() {
    facts=$("$1" -I -c "$INTERPRETER_FACTS" 2>/dev/null) || return 1
    {
        read -r version
        read -r executable
        read -r header
    } <<FACTS
$facts
FACTS
    case $version in "$2".*) ;; *) return 1 ;; esac
    if [ -z "$PYTHON" ] || [ -f "$header" ]; then
        PYTHON=$executable
        PYTHON_VERSION=$version
        PYTHON_HEADER=$header
    fi
    [ -f "$header" ]
}
