// A step allocates nothing of ours after the second one; what oneDNN allocates inside its own library is counted apart.

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

#include <dlfcn.h>

#include <gtest/gtest.h>

#include "core/communicator/communicator.h"
#include "core/ops/ops.h"
#include "core/trainer/trainer.h"

namespace {

thread_local bool counting = false;
std::atomic<int64_t> ours{0};
std::atomic<int64_t> libraries{0};

void count(const void* caller) {
  if (!counting) return;
  counting = false;  // dladdr may allocate
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0 && info.dli_fname;
  const std::string_view file = known ? info.dli_fname : "";
  (file.find("dnnl") != std::string_view::npos ? libraries : ours)++;
  counting = true;
}

}  // namespace

void* operator new(size_t size) {
  count(__builtin_return_address(0));
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

class Rows final : public RowSource {
 public:
  int64_t rows() const override { return 32; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(size_t, std::span<const int64_t>, std::span<std::byte> out) const override { std::ranges::fill(out, std::byte{0}); }
  std::string fingerprint() const override { return "zeros"; }

 private:
  std::vector<Column> columns_ = {{Role::input, "x", {DType::f32, {20}}}};
};

TracedStep trace(const StepShape& shape) {
  TracedStep step;
  step.graph = std::make_unique<Graph>();
  const Symbol x = step.graph->input("x", {DType::f32, {shape.rows, 20}});
  const Symbol kernel = step.graph->variable({"kernel", {DType::f32, {20, 30}}, true});
  const Symbol bias = step.graph->variable({"bias", {DType::f32, {30}}, true});
  const Symbol hidden = ops::relu(ops::dense(x, kernel, bias));
  const Symbol loss = ops::divide_no_nan(ops::sum(hidden), ops::stop_gradient(ops::replica_sum(ops::sum(ops::add(ops::multiply(hidden, 0), 1)))));
  const std::vector<Symbol> outputs = {loss}, seeds = {step.graph->constant(DType::f32, 1)}, weights = {kernel, bias};
  const std::vector<Symbol> gradients = differentiate(outputs, seeds, weights);
  step.inputs = {{RowSource::Role::input, "x", x}};
  step.gradients = {{"kernel", gradients[0]}, {"bias", gradients[1]}};
  step.reports = {{"loss", ops::reshape(ops::cast(loss, DType::f64), {1})}};
  return step;
}

TEST(Trainer, AStepAllocatesNothingAfterTheSecond) {
  run_ranks_as_threads(2, [](Communicator& communicator) {
    const std::vector<std::string> order = {"kernel", "bias"};
    MirroredState state({{"kernel", {DType::f32, {20, 30}}, true}, {"bias", {DType::f32, {30}}, true}}, order, {});
    const auto optimizer = make_optimizer("adam");
    Trainer trainer(communicator, {.replicas = {4, 2}}, trace, state, *optimizer);
    const Rows source;
    std::vector<int64_t> batch(32);
    for (int64_t step = 0; step < 2; ++step) trainer.step(step, source, batch, {});
    communicator.barrier("test");
    counting = true;
    for (int64_t step = 2; step < 12; ++step) trainer.step(step, source, batch, {});
    counting = false;
  });
  EXPECT_EQ(ours.load(), 0);
}

TEST(Trainer, TheCounterOfAllocationsCounts) {
  ours = 0;
  counting = true;
  auto number = std::make_unique<std::vector<int>>(100);
  counting = false;
  EXPECT_EQ(ours.load(), 2);
  EXPECT_EQ(number->size(), 100u);
}

}  // namespace
}  // namespace lockstep
