#!/usr/bin/env bash
# From mpirun to the end of the first step of jobs/fashion_mlp.yaml on 2 ranks, beside an mpirun of MPI_Init and MPI_Finalize alone, interleaved.
# Prints the medians of both and their difference in milliseconds.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-9}
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
milliseconds() { local begin; begin=$(date +%s%N); "$@" >"$folder/log" 2>&1; echo $((($(date +%s%N) - begin) / 1000000)); }
launch=(mpirun --oversubscribe --bind-to none -n 2 build/bin/lockstep)
median() { sort -n | sed -n "$((runs / 2 + 1))p"; }
for ((i = 0; i <= runs; i++)); do
  bare=$(milliseconds "${launch[@]}" bench --start-up)
  job=$(milliseconds "${launch[@]}" train jobs/fashion_mlp.yaml train.epochs=null +train.steps=1 data.validation=null run_folder="$folder/run$i")
  [ "$i" = 0 ] && continue  # the first fills the page cache
  echo "$bare" >>"$folder/bare"
  echo "$job" >>"$folder/job"
done
a=$(median <"$folder/bare")
b=$(median <"$folder/job")
echo "MPI_Init and MPI_Finalize $a ms, first step and its checkpoint done $b ms, difference $((b - a)) ms (medians of $runs)"
