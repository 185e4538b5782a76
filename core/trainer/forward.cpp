#include "core/trainer/forward.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/trainer/feed.h"

namespace lockstep {

ForwardRunner::ForwardRunner(TraceStep trace, MirroredState& state, uint64_t seed, std::string device) : trace_(std::move(trace)), state_(state), device_(std::move(device)), alone_(make_single_communicator()) { context_.seed = seed; }

ForwardRunner::Result ForwardRunner::run(const RowSource& source, std::span<const int64_t> rows) {
  const auto count = static_cast<int64_t>(rows.size());
  std::shared_ptr<Program>& program = programs_[count];
  if (!program) {
    ReplicaPart part;
    part.step = std::make_shared<const TracedStep>(trace_({count, count}));
    part.context = {0, 1, 0, {0, count}, device_};
    bind_variables(part, state_);
    for (const TracedStep::Output& output : part.step->outputs) part.kept.push_back(output.value.id());
    for (const TracedStep::Report& report : part.step->reports) part.kept.push_back(report.value.id());
    program = std::make_shared<Program>(std::vector<ReplicaPart>{std::move(part)}, *alone_, Replicas{}, context_);
  }
  const TracedStep& step = program->step(0);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    source.read(column_of(source, step.inputs[i].role, step.inputs[i].name), rows, program->input(0, i));
  }
  program->run();
  context_.printed.clear();
  return {program.get(), &step};
}

EvaluationSums evaluate(Communicator& communicator, ForwardRunner& runner, const RowSource& source, int64_t batch) {
  const int64_t batches = (source.rows() + batch - 1) / batch;
  std::string mine;  // doubles of this rank's batches, in batch order
  std::vector<int64_t> rows;
  std::vector<std::pair<std::string, std::vector<double>>> layout;
  for (int64_t b = communicator.rank(); b < batches; b += communicator.size()) {
    rows.clear();
    for (int64_t i = b * batch; i < std::min(source.rows(), (b + 1) * batch); ++i) rows.push_back(i);
    const ForwardRunner::Result result = runner.run(source, rows);
    for (const TracedStep::Report& report : result.step->reports) {
      const std::span<const std::byte> bytes = result.program->value(0, report.value.id());
      mine.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    if (layout.empty()) {
      for (const TracedStep::Report& report : result.step->reports) layout.emplace_back(report.name, std::vector<double>(static_cast<size_t>(report.value.type().elements())));
    }
  }
  const std::vector<std::string> all = communicator.all_gather(mine, "gathering the sums of an evaluation");
  // A rank without a batch of its own learns the layout from rank 0, which has the first.
  std::string names;
  for (const auto& [name, values] : layout) names += fmt::format("{}\n{}\n", name, values.size());
  names = communicator.all_gather(names, "gathering the sums of an evaluation").front();
  EvaluationSums sums;
  sums.samples = source.rows();
  for (size_t begin = 0; begin < names.size();) {
    const size_t middle = names.find('\n', begin), end = names.find('\n', middle + 1);
    const auto size = static_cast<size_t>(std::stoul(names.substr(middle + 1, end - middle - 1)));
    sums.reports.emplace_back(names.substr(begin, middle - begin), std::vector<double>(size));
    begin = end + 1;
  }
  std::vector<size_t> read(all.size(), 0);
  for (int64_t b = 0; b < batches; ++b) {
    const auto rank = static_cast<size_t>(b % communicator.size());
    for (auto& [name, total] : sums.reports) {
      for (double& value : total) {
        double part = 0;
        std::memcpy(&part, all[rank].data() + read[rank], sizeof part);
        read[rank] += sizeof part;
        value += part;
      }
    }
  }
  return sums;
}

std::vector<LivenessRecord> run_probe(Communicator& communicator, const Replicas& replicas, const TraceStep& trace, MirroredState& state, uint64_t seed, const std::string& device, int64_t probe_rows, const std::function<void(const TracedStep::Input&, std::span<std::byte>)>& fill,
                                      std::vector<PrintedLine>* printed) {
  StepContext context;
  context.seed = seed;
  context.warm_up = true;
  const auto step = std::make_shared<const TracedStep>(trace({probe_rows, probe_rows * replicas.count}));
  std::vector<ReplicaPart> parts;
  const Range hosted = replicas.of_rank(communicator.rank());
  for (int64_t replica = hosted.begin; replica < hosted.end; ++replica) {
    ReplicaPart part;
    part.step = step;
    // Each replica's probe is rows 0..n of the batch: the same for all, so that their outputs can be compared.
    part.context = {static_cast<int>(replica), replicas.count, communicator.rank(), {0, probe_rows}, device};
    bind_variables(part, state);
    for (const TracedStep::Output& output : step->outputs) part.kept.push_back(output.value.id());
    parts.push_back(std::move(part));
  }
  Program program(std::move(parts), communicator, replicas, context);
  for (size_t p = 0; p < program.parts(); ++p) {
    for (size_t i = 0; i < step->inputs.size(); ++i) fill(step->inputs[i], program.input(p, i));
  }
  program.run();
  if (printed) *printed = std::move(context.printed);
  return std::move(context.records);
}

}  // namespace lockstep
