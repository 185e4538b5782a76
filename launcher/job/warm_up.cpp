#include "launcher/job/warm_up.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/trainer/forward.h"
#include "io/json/json.h"

namespace lockstep {

namespace {

double fill_value(const std::string& fill) {
  if (fill == "ones") return 1;
  if (fill == "zeros") return 0;
  try {
    return std::stod(fill);
  } catch (const std::exception&) {
    throw Error("Y13", "warm_up.fill", fmt::format("expected ones, zeros or a number, found '{}'", printable(fill)));
  }
}

}  // namespace

std::vector<LiveReplica> run_warm_up(Communicator& communicator, const Log& log, const Blueprint& blueprint, const TracedModel& model, MirroredState& state, const Replicas& replicas, const WarmUp& warm_up) {
  WeightList weights = blueprint.weights;
  ForwardOptions options;
  options.probes = true;
  const auto trace = [&](const StepShape& shape) { return trace_forward(model, weights, shape, options); };
  const double value = fill_value(warm_up.fill);
  std::vector<PrintedLine> printed;
  std::vector<LivenessRecord> records;
  const auto seed = static_cast<uint64_t>(blueprint.job ? blueprint.job->job.seed : 0);
  if (!warm_up.skip) {
    records = run_probe(communicator, replicas, trace, state, seed, warm_up.device, warm_up.batch,
                        [&](const TracedStep::Input& input, std::span<std::byte> memory) {
                          Tensor one({DType::f64, input.value.shape()});
                          std::ranges::fill(one.as<double>(), value);
                          std::ranges::copy(cast(one, input.value.dtype()).bytes(), memory.begin());
                        },
                        &printed);
  }
  for (const std::string& line : gather_printed(communicator, printed, warm_up.device)) log.info(line);
  std::vector<LiveReplica> live = gather_liveness(communicator, replicas, records, blueprint.model->outputs.size(), warm_up.device);
  log.info("warm-up: " + liveness_line(live, replicas.count, communicator.size()));
  return live;
}

std::vector<std::string> gather_printed(Communicator& communicator, const std::vector<PrintedLine>& mine, const std::string& device) {
  Value list = Value::list();
  for (const PrintedLine& line : mine) list.push_back(Value(Value::Map{{"replica", line.replica}, {"text", fmt::format("{}  [{}, replica {}, {}]", line.text, line.layer, line.replica, device)}}));
  std::vector<std::pair<int64_t, std::string>> lines;
  for (const std::string& text : communicator.gather(write_json(list), "gathering printed lines")) {
    const Value records = read_json_text("printed lines", text, "X09");
    for (const Value& line : records.as_list()) lines.emplace_back(line.at("replica").as_integer(), line.at("text").as_string());
  }
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (auto& [replica, text] : lines) result.push_back(std::move(text));
  return result;
}

}  // namespace lockstep
