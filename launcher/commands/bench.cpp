#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include <mpi.h>

#include <fmt/format.h>

#include "core/onednn/onednn.h"
#include "core/ops/dense.h"
#include "core/trainer/trainer.h"
#include "launcher/commands/command.h"
#include "launcher/session.h"
#include "layers/model_builder.h"
#include "layers/training.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// Rows in memory: what a step costs without a disk.
class MemoryRows final : public RowSource {
 public:
  MemoryRows() : columns_{{Role::input, "image", {DType::f32, {784}}}, {Role::target, "logits", {DType::i64, {}}}}, values_(784 * 1024) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = static_cast<float>((i * 7919) % 255) / 255.0f;
  }
  int64_t rows() const override { return 1024; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(size_t column, std::span<const int64_t> rows, std::span<std::byte> out) const override {
    const size_t width = columns_[column].row.bytes();
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t label = rows[i] % 10;
      const void* from = column == 0 ? static_cast<const void*>(&values_[static_cast<size_t>(rows[i]) * 784]) : &label;
      std::memcpy(out.data() + i * width, from, width);
    }
  }
  std::string fingerprint() const override { return "memory"; }

 private:
  std::vector<Column> columns_;
  std::vector<float> values_;
};

/// One product of the step, with memory of its own.
struct Product {
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> tensors;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  Product(const Op& op, std::vector<TensorType> types) {
    NodeTypes node;
    node.inputs = types;
    node.outputs = op.infer(types);
    kernel = onednn_kernel(op, node);
    if (!kernel) throw Error("X30", std::string(op.name()), "oneDNN has no kernel for a product of the bench");
    for (const TensorType& type : node.inputs) {
      tensors.emplace_back(type);
      std::ranges::fill(tensors.back().as<float>(), 0.5f);
      inputs.push_back(tensors.back().bytes().data());
    }
    tensors.emplace_back(node.outputs[0]);
    outputs.push_back(tensors.back().bytes().data());
  }
  void run() { kernel->run({inputs.data(), outputs.data(), nullptr, nullptr, nullptr}); }
};

/// The products of a training step of an MLP, for so many rows: forward with bias and relu, kernel gradients, input gradients.
std::vector<Product> products_of(const std::vector<int64_t>& sizes, int64_t rows) {
  std::vector<Product> products;
  const auto f32 = [](Shape shape) { return TensorType{DType::f32, std::move(shape)}; };
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    const int64_t in = sizes[l], out = sizes[l + 1];
    const bool last = l + 2 == sizes.size();
    products.emplace_back(ops::DenseOp(false, last ? ops::Activation::none : ops::Activation::relu), std::vector<TensorType>{f32({rows, in}), f32({in, out}), f32({out})});
    products.emplace_back(ops::MatmulOp(true, false), std::vector<TensorType>{f32({rows, in}), f32({rows, out})});
    if (l > 0) products.emplace_back(ops::MatmulOp(false, true), std::vector<TensorType>{f32({rows, out}), f32({in, out})});
  }
  return products;
}

Value layer_value(const char* name, int64_t units, const char* activation) {
  return Value(Value::Map{{"name", name}, {"type", "Dense"}, {"units", units}, {"activation", activation}});
}

/// MLP 784-256-128-10, Adam, global batch 128, a replica a rank, against its bare products.
void bench_mlp(Communicator& communicator, const Log& log, double seconds) {
  const Value section(Value::Map{{"inputs", Value(Value::List{Value(Value::Map{{"name", "image"}, {"shape", Value(Value::List{Value(784)})}})})},
                                 {"layers", Value(Value::List{layer_value("hidden_1", 256, "relu"), layer_value("hidden_2", 128, "relu"), layer_value("logits", 10, "linear")})}});
  const std::unique_ptr<Model> model = build_model(section, builtin_layers());
  TracedModel traced;
  traced.call = [&](LayerContext& context, std::span<const Symbol> inputs) { return model->call(context, inputs); };
  traced.inputs = {{"image", {DType::f32, {784}}}};
  traced.outputs = {"logits"};
  const MemoryRows rows;
  TrainingSpec spec;
  spec.outputs.resize(1);
  spec.outputs[0].loss = make_loss(Value(Value::Map{{"type", "SparseCategoricalCrossentropy"}, {"from_logits", true}}));
  spec.columns = rows.columns();
  WeightList weights;
  constexpr int64_t global_batch = 128;
  const int ranks = communicator.size();
  const int64_t share = rows_of_replica(global_batch, 0, ranks).size();
  const TracedTraining first = trace_training(traced, spec, weights, {share, global_batch});
  std::vector<std::string> gradients;
  for (const auto& gradient : first.step.gradients) gradients.push_back(gradient.variable);
  std::vector<Variable> variables;
  for (const Weight& weight : weights.all()) variables.push_back(weight.variable);
  MirroredState state(variables, gradients, {});
  for (size_t v = 0; v < weights.all().size(); ++v) state.set(v, weights.all()[v].initializer->make(variables[v].type, 1, variables[v].path));
  const auto optimizer = make_optimizer("adam");
  Trainer trainer(communicator, {.replicas = {ranks, ranks}}, [&](const StepShape& shape) { return trace_training(traced, spec, weights, shape).step; }, state, *optimizer);
  std::vector<int64_t> batch(global_batch);
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = static_cast<int64_t>(i);

  std::vector<Product> products = products_of({784, 256, 128, 10}, share);
  int64_t step = 0;
  const auto run_steps = [&](int count) {
    communicator.barrier("bench");
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) trainer.step(step++, rows, batch, {});
    return seconds_since(begin) / count;
  };
  const auto run_products = [&](int count) {
    communicator.barrier("bench");
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i) {
      for (Product& product : products) product.run();
    }
    return seconds_since(begin) / count;
  };
  constexpr int block = 50;
  run_steps(block);
  run_products(block);
  std::vector<double> steps, limits, ratios;
  // The same number of blocks on every rank: a rank's clock must not decide how often it steps.
  const auto blocks = static_cast<int>(std::clamp(seconds / (2 * block * 0.0007), 9.0, 400.0));
  for (int i = 0; i < blocks; ++i) {
    steps.push_back(run_steps(block));
    limits.push_back(run_products(block));
    ratios.push_back(limits.back() / steps.back());
  }
  log.result(fmt::format("mlp 784-256-128-10, adam, global batch {}, {} ranks: {:.0f} us a step; its oneDNN products alone {:.0f} us; ratio {:.2f} (median of {} blocks)", global_batch, ranks, median(steps) * 1e6, median(limits) * 1e6, median(ratios), ratios.size()));
}

/// Reducer (reduce_scatter and all_gather) against MPI_Allreduce, f32.
void bench_all_reduce(Communicator& communicator, const Log& log) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (communicator.size() == 1 || !initialized) {
    log.result("all-reduce: start with mpirun -n 2 to compare with MPI_Allreduce");
    return;
  }
  for (const int64_t bytes : {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20}) {
    const int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
    const std::unique_ptr<Reducer> reducer = communicator.make_reducer(DType::f32, elements, {communicator.size(), communicator.size()});
    Tensor full({DType::f32, {elements}}), in({DType::f32, {elements}}), out({DType::f32, {elements}});
    auto* values = full.as<float>().data();
    const Reducer::Take take = [values](int64_t first, std::span<const std::byte> sums) { std::memcpy(values + first, sums.data(), sums.size()); };
    std::ranges::fill(in.as<float>(), 1.0f);
    const int count = bytes >= (16 << 20) ? 4 : 50;
    const auto ours = [&] {
      communicator.barrier("bench");
      const auto begin = Clock::now();
      for (int i = 0; i < count; ++i) {
        reducer->begin();
        reducer->reduce_scatter(take);
        reducer->all_gather(full.bytes());
      }
      return seconds_since(begin) / count;
    };
    const auto theirs = [&] {
      communicator.barrier("bench");
      const auto begin = Clock::now();
      for (int i = 0; i < count; ++i) MPI_Allreduce(in.bytes().data(), out.bytes().data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      return seconds_since(begin) / count;
    };
    ours();
    theirs();
    std::vector<double> a, b, ratios;
    for (int i = 0; i < 15; ++i) {
      a.push_back(ours());
      b.push_back(theirs());
      ratios.push_back(b.back() / a.back());
    }
    log.result(fmt::format("all-reduce {:>6} KiB: {:.1f} us, MPI_Allreduce {:.1f} us, {:.1f} times as fast (median of {})", bytes >> 10, median(a) * 1e6, median(b) * 1e6, median(ratios), ratios.size()));
  }
}

}  // namespace

/// lockstep bench
Command bench_command() {
  return {"bench", "Times of a training step and of the all-reduce beside their limits, in one run", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto seconds = std::make_shared<double>(3);
            auto start_up = std::make_shared<bool>(false);
            app.add_option("--seconds", *seconds, "How long the step is timed")->check(CLI::Range(0.1, 600.0));
            app.add_flag("--start-up", *start_up, "Only start and end MPI: what scripts/bench_start_up.sh compares a job's first step with");
            return [seconds, start_up, &global] {
              if (*start_up) {
                MPI_Init(nullptr, nullptr);
                MPI_Finalize();
                return ExitCode::done;
              }
              run_ranks({global.threads, false, global.quiet}, [&](Communicator& communicator, const Log& log) {
                bench_mlp(communicator, log, *seconds);
                bench_all_reduce(communicator, log);
              });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
