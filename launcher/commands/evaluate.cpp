#include "launcher/job/evaluate.h"

#include <memory>

#include "io/json/json.h"
#include "launcher/commands/command.h"
#include "launcher/session.h"

namespace lockstep {

/// lockstep evaluate TARGET [--data JOB.yaml] [--json]
Command evaluate_command() {
  return {"evaluate", "Loss and metrics of a model over a data set, as one JSON line", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto request = std::make_shared<EvaluateRequest>();
            app.add_option("target", request->target, "A model file, a run or checkpoint folder, or a job")->required();
            app.add_option("overrides", request->overrides, "key.path=value: keys of the job, changed for this start");
            app.add_option("--data", request->data_job, "A job whose data, losses and metrics are used");
            app.add_flag_callback("--json", [] {}, "One JSON line: what is printed without it too");
            return [request, &global] {
              run_ranks({global.threads, true, global.quiet}, [&](Communicator& communicator, const Log& log) { log.result(write_json(evaluate_target(communicator, log, *request))); });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
