#!/usr/bin/env bash
# Builds a preset: build.sh [PRESET [CMAKE OPTION...]] [-- TARGET...]. Without arguments: release.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ $# -gt 0 ] && shift
command -v ccache >/dev/null && options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset "$preset" "${options[@]}" >/dev/null
if [ $# -gt 0 ]; then cmake --build --preset "$preset" --target "$@"; else cmake --build --preset "$preset"; fi
