#include "launcher/job/predict.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/trainer/forward.h"
#include "io/data/data.h"
#include "launcher/environment.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/training_plan.h"
#include "launcher/output_file.h"

namespace lockstep {

namespace {

/// Takes the rows of one batch after the other, by output, and puts them where they belong.
class Collector {
 public:
  explicit Collector(int64_t rows) : rows_(rows) {}

  void take(int64_t first, const ForwardRunner::Result& result) {
    if (outputs_.empty()) {
      for (const TracedStep::Output& output : result.step->outputs) {
        TensorType type = output.value.type();
        type.shape[0] = rows_;
        outputs_.push_back({output.name, Tensor(type)});
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::span<const std::byte> batch = result.program->value(0, result.step->outputs[i].value.id());
      const auto row = outputs_[i].values.type().bytes() / static_cast<size_t>(rows_);
      std::ranges::copy(batch, outputs_[i].values.bytes().begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(first) * row));
    }
  }

  std::vector<NamedTensor>& outputs() { return outputs_; }

 private:
  int64_t rows_;
  std::vector<NamedTensor> outputs_;
};

}  // namespace

int64_t predict(Communicator& communicator, const Log& log, const PredictRequest& request) {
  Blueprint blueprint = make_blueprint(communicator, {request.target, request.overrides, "predict"});
  for (const std::string& note : blueprint.notes) log.info(note);
  for (const std::string& note : blueprint.search_notes) log.warn(note);
  MirroredState state = fresh_state(blueprint, {}, {});
  const Restored restored = restore_state(communicator, blueprint, state, restore_rules(blueprint, false), nullptr);
  for (const std::string& warning : restored.warnings) log.warn(warning);
  std::unique_ptr<RowSource> data;
  together(communicator, "opening the inputs", [&] {
    DataExpectation expectation = expectation_of(blueprint);
    expectation.outputs.clear();
    data = open_inputs(request.inputs, expectation).rows;
  });
  const TracedModel model = traced_model(blueprint, data.get());
  ForwardOptions options;
  options.layers = request.layers;
  options.columns = data->columns();
  ForwardRunner runner([&](const StepShape& shape) { return trace_forward(model, blueprint.weights, shape, options); }, state, 0, device_of(communicator));

  const int64_t count = data->rows();
  const int64_t batches = (count + request.batch - 1) / request.batch;
  Collector collector(count);
  std::vector<int64_t> rows;
  together(communicator, "predicting", [&] {
    for (int64_t b = communicator.rank(); b < batches; b += communicator.size()) {
      rows.clear();
      for (int64_t i = b * request.batch; i < std::min(count, (b + 1) * request.batch); ++i) rows.push_back(i);
      collector.take(b * request.batch, runner.run(*data, rows));
    }
  });
  // Rank 0 puts the other ranks' batches between its own. It always has the first.
  const size_t outputs = static_cast<size_t>(std::stoul(on_root(communicator, "gathering predictions", [&] { return std::to_string(collector.outputs().size()); })));
  for (size_t i = 0; i < outputs; ++i) {
    std::string mine;
    if (communicator.rank() != 0 && !collector.outputs().empty()) {
      const std::span<const std::byte> bytes = collector.outputs()[i].values.bytes();
      const size_t row = bytes.size() / static_cast<size_t>(count);
      for (int64_t b = communicator.rank(); b < batches; b += communicator.size()) {
        const size_t begin = static_cast<size_t>(b * request.batch) * row;
        const size_t end = static_cast<size_t>(std::min(count, (b + 1) * request.batch)) * row;
        mine.append(reinterpret_cast<const char*>(bytes.data()) + begin, end - begin);
      }
    }
    const std::vector<std::string> all = communicator.gather(mine, "gathering predictions");
    if (communicator.rank() != 0) continue;
    std::span<std::byte> bytes = collector.outputs()[i].values.bytes();
    const size_t row = bytes.size() / static_cast<size_t>(count);
    for (int rank = 1; rank < communicator.size(); ++rank) {
      size_t read = 0;
      for (int64_t b = rank; b < batches; b += communicator.size()) {
        const size_t begin = static_cast<size_t>(b * request.batch) * row;
        const size_t size = static_cast<size_t>(std::min(count, (b + 1) * request.batch) - b * request.batch) * row;
        std::memcpy(bytes.data() + begin, all[static_cast<size_t>(rank)].data() + read, size);
        read += size;
      }
    }
  }
  on_root(communicator, "writing the predictions", [&]() -> std::string {
    for (NamedTensor& output : collector.outputs()) output.name = path_component(output.name);
    write_tensors(request.output, "/outputs", collector.outputs());
    return {};
  });
  return count;
}

}  // namespace lockstep
