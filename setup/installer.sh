# Provides uv, which installs and resolves. Sourced by the other setup scripts.
# shellcheck shell=sh

# provide_uv PYTHON DIRECTORY: sets UV to the one on PATH, or installs the locked one
# below DIRECTORY with pip. Returns 1 after a message.
provide_uv() {
    follow_pip_settings "$1"
    UV=$(command -v uv) || UV=''
    if [ -n "$UV" ] && "$UV" --version >/dev/null 2>&1; then
        return 0
    fi
    has_pip=$1
    if ! "$1" -c 'import pip' 2>/dev/null; then
        has_pip=$2/venv/bin/python
        "$1" -m venv "$2/venv" >/dev/null 2>&1 || {
            cat >&2 <<MESSAGE
sluice: no installer: uv is not on PATH, and $1 has neither pip nor ensurepip
  try one of:
    install uv
    apt-get install python3-pip python3.10-venv
MESSAGE
            return 1
        }
    fi
    UV=$2/bin/uv
    PIP_USER=0 PIP_ROOT_USER_ACTION=ignore "$has_pip" -m pip install --quiet \
        --disable-pip-version-check --require-hashes --target "$2" \
        --requirement requirements/uv.txt
}

# uv does not read pip's settings, where a machine may name its own package index.
follow_pip_settings() {
    pip_settings=$("$1" -m pip config list 2>/dev/null) || return 0
    follow_pip_setting index-url UV_DEFAULT_INDEX
    follow_pip_setting extra-index-url UV_INDEX
    follow_pip_setting cert SSL_CERT_FILE
}

# follow_pip_setting KEY VARIABLE: the variable wins where it is set.
follow_pip_setting() {
    value=$(printf '%s\n' "$pip_settings" |
        sed -n "s/^[^=]*\.$1='\(.*\)'\$/\1/p" | sed 's/\\n/ /g' | head -n 1)
    if [ -n "$value" ] && eval "[ -z \"\${$2:-}\" ]"; then
        export "$2=$value"
    fi
}
