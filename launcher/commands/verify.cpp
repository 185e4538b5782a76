#include <memory>

#include <fmt/format.h>

#include "launcher/commands/command.h"
#include "launcher/environment.h"
#include "launcher/job/blueprint.h"
#include "launcher/job/mirror.h"
#include "launcher/job/training_plan.h"
#include "launcher/job/warm_up.h"
#include "launcher/session.h"

namespace lockstep {

namespace {

void verify(Communicator& communicator, const Log& log, const std::string& target, const std::vector<std::string>& overrides) {
  Blueprint blueprint = make_blueprint(communicator, {target, overrides, ""});
  for (const std::string& note : blueprint.notes) log.info(note);
  for (const std::string& note : blueprint.search_notes) log.warn(note);
  MirroredState state = fresh_state(blueprint, {}, {});
  const Restored restored = restore_state(communicator, blueprint, state, restore_rules(blueprint, false), nullptr);
  for (const std::string& note : restored.notes) log.info(note);
  for (const std::string& warning : restored.warnings) log.warn(warning);
  check_mirrored(communicator, state, "after the restore");
  WarmUp warm_up;
  if (blueprint.job) {
    warm_up.batch = blueprint.job->job.warm_up.batch;
    warm_up.fill = blueprint.job->job.warm_up.fill;
  }
  warm_up.device = device_of(communicator);
  const Replicas replicas{communicator.size(), communicator.size()};
  run_warm_up(communicator, log, blueprint, traced_model(blueprint, nullptr), state, replicas, warm_up);
  log.info(fmt::format("{}: {} weights, state {}", target, state.variables().size(), state.hash()));
}

}  // namespace

/// lockstep verify TARGET
Command verify_command() {
  return {"verify", "Reads everything as a restore would and runs the warm-up; writes nothing", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto target = std::make_shared<std::string>();
            auto overrides = std::make_shared<std::vector<std::string>>();
            app.add_option("target", *target, "A model file, a run or checkpoint folder, or a job")->required();
            app.add_option("overrides", *overrides, "key.path=value: keys of the job, changed for this start");
            return [target, overrides, &global] {
              run_ranks({global.threads, false, global.quiet}, [&](Communicator& communicator, const Log& log) { verify(communicator, log, *target, *overrides); });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
