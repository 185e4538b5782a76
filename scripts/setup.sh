#!/usr/bin/env bash
# Installs what lockstep is built with, and Fashion-MNIST, from Debian's packages. Needs root (or sudo). Safe to run again.
set -euo pipefail

packages="build-essential cmake ninja-build openmpi-bin libopenmpi-dev libhdf5-dev libyaml-cpp-dev libdnnl-dev libcli11-dev
  libspdlog-dev libfmt-dev nlohmann-json3-dev libdeflate-dev libzip-dev libprotobuf-dev protobuf-compiler libleveldb-dev libsnappy-dev libxxhash-dev zlib1g-dev
  libhwloc-dev libgtest-dev libgmock-dev libbenchmark-dev dataset-fashion-mnist"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "setup.sh: not root, and no sudo. Ask for these packages, or build them under CMAKE_PREFIX_PATH:$missing" >&2; exit 1; }
  as_root=sudo
fi
echo "setup.sh: installing$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
