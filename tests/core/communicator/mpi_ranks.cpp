#include <cstdio>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include "tests/core/communicator/checks.h"

/// A program for mpirun: `mpi_ranks CASE NODES`. Rank r prints "rank r: " and what came of it; mpi_ranks_test.cpp starts it.
using namespace lockstep;

namespace {

void run_case(const std::string& name, Communicator& communicator) {
  const int ranks = communicator.size();
  if (name == "sums") {
    for (int replicas = ranks; replicas <= 9; ++replicas) {
      for (const int64_t elements : {0, 1, 4095, 12289}) checks::reduces_in_tree_order<float>(communicator, DType::f32, elements, replicas);
      checks::sums_in_tree_order<double>(communicator, DType::f64, 7, replicas);
    }
    checks::reduces_in_tree_order<float>(communicator, DType::f32, 1000003, ranks + 1);
    checks::passes_texts(communicator);
  } else if (name == "failure") {
    communicator.barrier("set-up");
    if (communicator.rank() == ranks - 1) throw Error("D07", "x.h5", "has 3 rows, expected 4");
    communicator.barrier("never");
  } else if (name == "missing") {
    communicator.set_limit(0.5);
    communicator.barrier("set-up");
    // The last rank comes too late.
    if (communicator.rank() == ranks - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    } else {
      communicator.barrier("epoch end");
    }
  } else if (name == "orphan") {
    if (communicator.rank() == 0) {
      std::printf("pid %d\n", getpid());
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
}

}  // namespace

int main(int, char** arguments) {
  if (!started_by_launcher()) return 1;
  MpiSession session;
  const std::unique_ptr<Communicator> communicator = session.make_communicator(std::atoi(arguments[2]));
  std::string text = "done";
  try {
    run_case(arguments[1], *communicator);
  } catch (const Error& error) {
    communicator->report_failure(error);
    text = error.what();
  } catch (const std::exception& error) {
    communicator->report_failure(Error("X01", "", error.what()));
    text = error.what();
  }
  std::printf("rank %d: %s\n", communicator->rank(), text.c_str());
  std::fflush(stdout);
  return 0;
}
