#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/core/communicator/checks.h"

namespace {

thread_local int64_t allocations = 0;

}  // namespace

// Every form of new in this program counts.
void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

using namespace lockstep;

TEST(Communicator, StepsAllocateNothing) {
  run_ranks_as_threads(2, [](Communicator& communicator) {
    const Replicas replicas{5, 2};
    const auto reducer = communicator.make_reducer(DType::f32, 20000, replicas);
    const auto sum = communicator.make_replica_sum(DType::f64, 9, replicas);
    std::vector<float> full(20000);
    const Reducer::Take take = [&](int64_t first, std::span<const std::byte> sums) { std::memcpy(full.data() + first, sums.data(), sums.size()); };
    const int64_t before = allocations;
    for (int step = 1; step < 20; ++step) {
      communicator.set_step(step);
      reducer->begin();
      reducer->reduce_scatter(take);
      reducer->all_gather(std::as_writable_bytes(std::span(full)));
      sum->run();
      communicator.barrier("step");
      communicator.check();
    }
    EXPECT_EQ(allocations - before, 0);
  });
}
