#include "layers/summary/summary.h"

#include <memory>

#include "launcher/commands/command.h"
#include "launcher/job/blueprint.h"
#include "launcher/session.h"

namespace lockstep {

/// lockstep summary TARGET
Command summary_command() {
  return {"summary", "The layers of a model, their shapes and parameters, as Keras shows them", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto target = std::make_shared<std::string>();
            app.add_option("target", *target, "A model file, a run or checkpoint folder, or a job")->required();
            return [target, &global] {
              run_ranks({global.threads, false, global.quiet}, [&](Communicator& communicator, const Log& log) {
                Blueprint blueprint = make_blueprint(communicator, {*target, {}, ""});
                log.result(summarize(*blueprint.model, blueprint.semantics).text());
              });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
