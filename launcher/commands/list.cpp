#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/optimizer/optimizer.h"
#include "launcher/commands/command.h"
#include "launcher/job/faults.h"
#include "launcher/log.h"
#include "layers/losses/loss.h"
#include "layers/metrics/metric.h"
#include "layers/model.h"

namespace lockstep {

namespace {

std::vector<std::string> names_of_kind(const std::string& kind) {
  if (kind == "layers") return builtin_layers().types();
  if (kind == "losses") return loss_types();
  if (kind == "metrics") return metric_types();
  if (kind == "optimizers") return optimizer_types();
  if (kind == "faults") {
    std::vector<std::string> lines;
    for (const FaultKind& fault : fault_kinds()) lines.push_back(fmt::format("{:<16} {}", fault.name, fault.sentence));
    return lines;
  }
  const std::vector<std::string> kinds = {"layers", "losses", "metrics", "optimizers", "faults"};
  throw Error("Y41", "command line", fmt::format("no list of '{}'{}; lists: {}", printable(kind), did_you_mean(kind, kinds), fmt::join(kinds, ", ")));
}

}  // namespace

/// lockstep list layers|losses|metrics|optimizers|faults
Command list_command() {
  return {"list", "Names of the built-in layers, losses, metrics, optimizers or faults", [](CLI::App& app, const GlobalOptions&) -> std::function<ExitCode()> {
            auto kind = std::make_shared<std::string>();
            app.add_option("kind", *kind, "layers, losses, metrics, optimizers or faults")->required();
            return [kind] {
              const Log log(true);
              for (const std::string& name : names_of_kind(*kind)) log.result(name);
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
