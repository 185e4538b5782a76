#include "launcher/job/predict.h"

#include <memory>

#include <fmt/format.h>

#include "launcher/commands/command.h"
#include "launcher/session.h"

namespace lockstep {

/// lockstep predict TARGET [--batch 32] [--layer NAME]... --inputs FILE.h5:/group --output OUT.h5
Command predict_command() {
  return {"predict", "Outputs of a model, or of one of its layers, for every row of a file", [](CLI::App& app, const GlobalOptions& global) -> std::function<ExitCode()> {
            auto request = std::make_shared<PredictRequest>();
            app.add_option("target", request->target, "A model file, a run or checkpoint folder, or a job")->required();
            app.add_option("overrides", request->overrides, "key.path=value: keys of the job, changed for this start");
            app.add_option("--inputs", request->inputs, "FILE.h5:/group with a data set for each input; or .npz, .npy, .csv")->required();
            app.add_option("--output", request->output, "OUT.h5 (/outputs/NAME), .npz, .npy or .csv")->required();
            app.add_option("--batch", request->batch, "Rows computed at once")->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
            app.add_option("--layer", request->layers, "Give this layer's output instead; may be repeated; nested: model/layer")->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
            return [request, &global] {
              run_ranks({global.threads, true, global.quiet}, [&](Communicator& communicator, const Log& log) {
                const int64_t rows = predict(communicator, log, *request);
                log.info(fmt::format("{} rows in {}", rows, request->output));
              });
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
