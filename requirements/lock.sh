#!/bin/sh
# Makes the four locks anew from pyproject.toml, for CPython 3.11-3.13 on Linux, macOS and Windows.
# Needs uv, which nothing else here does. `UV=/path/to/uv make lock` names one that is not on the PATH;
# `make lock ARGS=--upgrade` takes the newest versions that pyproject.toml allows.
set -eu
cd "$(dirname "$0")/.."
uv="${UV:-uv}"
if ! command -v "$uv" >/dev/null 2>&1; then
    echo "make lock needs uv, which is not on the PATH (UV=/path/to/uv names one)." >&2
    exit 1
fi

"$uv" lock --quiet "$@"

lock() {
    name="$1"
    shift
    {
        echo "# Every package of \"$name\", pinned with hashes. Made by \`make lock\`; do not edit."
        # The two pruned are never installed: see override-dependencies in pyproject.toml.
        "$uv" export --quiet --locked --no-header --no-annotate --no-emit-project --no-default-groups \
            --prune llama-cpp-python --prune llm --group build "$@"
    } >"requirements/$name.lock.new"
    mv "requirements/$name.lock.new" "requirements/$name.lock"
    echo "requirements/$name.lock: $(grep -c == "requirements/$name.lock") packages"
}

lock base
lock database --extra database
lock local --extra database --extra model
lock dev --extra database --extra model --group dev
