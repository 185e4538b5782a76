#include "launcher/job/evaluate.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error/error.h"
#include "launcher/environment.h"
#include "launcher/job/training_plan.h"

namespace lockstep {

std::vector<std::pair<std::string, double>> evaluation_numbers(const std::vector<LoggedNumber>& numbers, const EvaluationSums& sums) {
  std::vector<std::pair<std::string, double>> result;
  for (const LoggedNumber& number : numbers) {
    const auto found = std::find_if(sums.reports.begin(), sums.reports.end(), [&](const auto& report) { return report.first == number.name; });
    if (found == sums.reports.end()) continue;
    const std::vector<double>& values = found->second;
    const double value = number.metric ? number.value(values) : values[0] / values[1];
    result.emplace_back(number.name, value);
  }
  return result;
}

namespace {

/// The data set that is evaluated, and its place in the job.
std::pair<const Value*, std::string> evaluated_data(const Job& job, const std::string& target) {
  if (job.data.test.given()) return {&job.data.test.description, "data.test"};
  if (job.data.validation.given()) return {&job.data.validation.description, "data.validation"};
  if (job.data.train.given()) return {&job.data.train.description, "data.train"};
  throw Error("Y11", target, "'data.validation' is required: there is nothing to evaluate on; name a job that has data with --data JOB.yaml");
}

}  // namespace

Value evaluate_target(Communicator& communicator, const Log& log, const EvaluateRequest& request) {
  Blueprint blueprint = make_blueprint(communicator, {request.target, request.overrides, ""});
  together(communicator, "reading the job of the data", [&] {
    if (!request.data_job.empty()) {
      const LoadedJob data_job = load_job(request.data_job);
      if (!blueprint.job) {
        blueprint.job = data_job;
      } else {
        blueprint.job->job.data = data_job.job.data;
        if (!data_job.job.train.losses.is_null()) blueprint.job->job.train = data_job.job.train;
      }
    }
    if (!blueprint.job) throw Error("Y11", request.target, "a model file has no data; name a job that has with --data JOB.yaml");
  });
  const Job& job = blueprint.job->job;
  std::unique_ptr<RowSource> data;
  together(communicator, "opening the data", [&] {
    const auto [description, place] = evaluated_data(job, request.target);
    data = open_data(*description, place, expectation_of(blueprint), static_cast<uint64_t>(job.seed)).rows;
  });
  const TrainingSpec spec = training_spec(blueprint, *data);
  const TracedModel model = traced_model(blueprint, data.get());
  MirroredState state = fresh_state(blueprint, {}, {});
  const Restored restored = restore_state(communicator, blueprint, state, restore_rules(blueprint, false), nullptr);
  for (const std::string& note : blueprint.search_notes) log.warn(note);
  for (const std::string& warning : restored.warnings) log.warn(warning);
  const int64_t batch = std::min<int64_t>(job.train.global_batch.value_or(32), data->rows());
  const std::vector<LoggedNumber> numbers = trace_evaluation(model, spec, blueprint.weights, {batch, batch}).numbers;
  ForwardRunner runner([&](const StepShape& shape) { return trace_evaluation(model, spec, blueprint.weights, shape).step; }, state, static_cast<uint64_t>(job.seed), device_of(communicator));
  const EvaluationSums sums = evaluate(communicator, runner, *data, batch);
  Value line(Value::Map{{"samples", sums.samples}});
  for (const auto& [name, value] : evaluation_numbers(numbers, sums)) line.set(name, value);
  return line;
}

}  // namespace lockstep
