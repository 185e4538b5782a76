#!/usr/bin/env bash
# From a fresh clone to a trained model: installs, builds, trains jobs/fashion_mlp.yaml on 2 MPI ranks and ends with its accuracy on the test images.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
scripts/build.sh release -- lockstep
# Open MPI refuses to run as root unless told to; in a container there is often nobody else.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
mpirun --oversubscribe --bind-to none -n 2 build/bin/lockstep train jobs/fashion_mlp.yaml
echo "accuracy on the 10,000 test images:"
build/bin/lockstep evaluate jobs/runs/fashion_mlp --data jobs/fashion_mlp.yaml
