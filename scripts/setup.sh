# shellcheck shell=bash
# Sourced by demo, test and check: finds a Python, keeps .venv, installs what the caller needs. Sets `root` and `venv`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv

fail() {
    echo "$1" >&2
    exit 1
}

# Prints the first Python that is new enough. A name may exist and still not run (version managers leave such shims).
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail "eagle-assist needs Python 3.11 or newer and found none: install one, or name it with PYTHON=/path/to/python3."
}

# install EXTRAS: an editable install into .venv, skipped while pyproject.toml and the checkout's place stay the same.
install() {
    local extras=$1 python stamp wanted
    stamp=$venv/.eagle-assist-${extras//,/+}
    wanted="$root $(cksum <"$root/pyproject.toml")"
    if [[ -x $venv/bin/eagle-assist && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
        return
    fi
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        echo "Making $venv with $("$python" --version)." >&2
        "$python" -m venv "$venv" || fail "'$python -m venv' failed; on Debian and Ubuntu it needs the package python3-venv."
    fi
    echo "Installing eagle-assist[$extras] into $venv; the first time downloads PyTorch and a model, which takes minutes." >&2
    (cd "$root" && "$venv/bin/python" -m pip install --disable-pip-version-check --editable ".[$extras]" >&2)
    printf '%s\n' "$wanted" >"$stamp"
}
