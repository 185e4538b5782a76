#include "io/json/json.h"
#include "launcher/commands/command.h"
#include "launcher/job_file/job.h"
#include "launcher/log.h"

namespace lockstep {

/// lockstep schema
Command schema_command() {
  return {"schema", "The JSON schema of job files, for editors", [](CLI::App&, const GlobalOptions&) -> std::function<ExitCode()> {
            return [] {
              Log(true).result(write_json(job_schema(), 2));
              return ExitCode::done;
            };
          }};
}

}  // namespace lockstep
