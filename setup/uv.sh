# Provides uv, which installs and resolves. Sourced by the other scripts.
# shellcheck shell=sh

# Sets UV to the one on PATH, or else installs the locked one into .uv/ with pip.
provide_uv() {
    for python in python3 python3.12 python3.10 /usr/bin/python3; do
        if "$python" -c 'import venv' 2>/dev/null; then break; fi
    done
    follow_pip_settings
    UV=$(command -v uv) || UV=.uv/bin/uv
    if "$UV" --version >/dev/null 2>&1; then return; fi
    "$python" -m venv --clear .uv >&2 && .uv/bin/python -m pip install --quiet \
        --disable-pip-version-check --require-hashes -r requirements/uv.txt >&2 || {
        echo "sluice: uv could not be installed with $python; install it by hand" >&2
        exit 2
    }
}

# uv does not read pip's settings, in which a machine may name its own package index.
# Variables of uv that are set win.
follow_pip_settings() {
    settings=$("$python" -m pip config list 2>/dev/null) || return 0
    index=$(setting index-url) more=$(setting extra-index-url) cert=$(setting cert)
    if [ -n "$index" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"; fi
    if [ -n "$more" ]; then export UV_INDEX="${UV_INDEX:-$more}"; fi
    if [ -n "$cert" ]; then export SSL_CERT_FILE="${SSL_CERT_FILE:-$cert}"; fi
}

setting() {
    echo "$settings" | sed -n "s/^[^=]*\.$1='\(.*\)'\$/\1/p" | sed 's/\\n/ /g' | head -n 1
}
