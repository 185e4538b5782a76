#include "launcher/job/train.h"

#include <atomic>
#include <memory>

#include "launcher/commands/command.h"
#include "launcher/session.h"

namespace lockstep {

/// lockstep train JOB.yaml [key.path=value ...]
Command train_command() {
  return {"train", "Trains a job, or goes on with it from its newest checkpoint", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto request = std::make_shared<TrainRequest>();
            app.add_option("job", request->job, "The job file")->required();
            app.add_option("overrides", request->overrides, "key.path=value: keys of the job, changed for this start");
            app.add_flag("--allow-config-change", request->allow_config_change, "Go on with a checkpoint though keys changed that change the run");
            return [request, &global] {
              std::atomic<ExitCode> result = ExitCode::done;  // under --ranks, ranks are threads; all have the same code
              run_ranks({global.threads, true, global.quiet}, [&](Communicator& communicator, const Log& log) {
                result = train(communicator, log, *request);
              });
              return result.load();
            };
          }};
}

}  // namespace lockstep
