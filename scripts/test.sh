#!/usr/bin/env bash
# Every test, from a fresh clone: installs, builds, runs. The last line counts: 'N passed, N failed'.
set -uo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh || exit 1
scripts/build.sh release -DLOCKSTEP_TESTS=ON || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
ctest --test-dir build --output-on-failure -j 2 | tee "$log"
status=${PIPESTATUS[0]}
total=$(grep -oE 'out of [0-9]+' "$log" | tail -n 1 | grep -oE '[0-9]+')
failed=$(grep -oE '[0-9]+ tests failed out of' "$log" | tail -n 1 | grep -oE '^[0-9]+')
if [ -z "$total" ] || [ "$total" = 0 ]; then
  echo "no test was run"
  exit 1
fi
echo "$((total - ${failed:-0})) passed, ${failed:-0} failed"
exit "$status"
