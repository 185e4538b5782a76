#include "launcher/program.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include <fmt/format.h>

#include "launcher/commands/command.h"
#include "launcher/session.h"

namespace lockstep {

namespace {

constexpr const char* examples = R"(Examples:
  lockstep train jobs/fashion_mlp.yaml                       one rank
  mpirun -n 4 lockstep train JOB.yaml train.epochs=3         four ranks, one key of the job changed
  lockstep predict runs/NAME --inputs x.h5:/inputs --output y.h5

Exit codes: 0 done, 2 job or command line, 3 model, checkpoint or data, 4 launch or device, 5 peer lost (retry), 6 numeric, 70 internal,
74 storage, 75 preempted after a commit (retry).)";

/// The rank that the launcher gave this process, from its environment; 0 without a launcher. A message is printed by one rank.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

void print(const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", text);
}

/// A command line that CLI11 could not read, as our own error.
std::string command_line_error(const CLI::App& app, const CLI::ParseError& error, int count, const char* const* arguments) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  const bool no_command = app.get_subcommands().empty();
  const auto is_word = [](const char* text) { return text[0] != '-'; };
  const char* const* word = std::find_if(arguments + 1, arguments + count, is_word);
  if (no_command && word != arguments + count) return fmt::format("error[Y41] command line: unknown command '{}'{}; 'lockstep --help' lists them", printable(*word), did_you_mean(*word, names));
  if (no_command) return "error[Y41] command line: a command is needed; 'lockstep --help' lists them";
  return fmt::format("error[Y41] command line: {}; 'lockstep {} --help' tells more", error.what(), app.get_subcommands().front()->get_name());
}

}  // namespace

int run_program(int count, const char* const* arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full quota is an error that can be told, not a death
  CLI::App app("Trains Keras-style models on many ranks at once, in step.", "lockstep");
  app.set_version_flag("--version", "lockstep 0.1.0");
  app.require_subcommand(1);
  app.footer(examples);
  GlobalOptions options;
  std::function<ExitCode()> run;
  for (const Command& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    sub->add_option("--ranks", options.threads, "Ranks as threads of this process (without mpirun)")->check(CLI::Range(1, 4096));
    sub->add_flag("--quiet", options.quiet, "Only results and warnings");
    std::function<ExitCode()> command_run = command.set_up(*sub, options);
    sub->callback([&run, command_run] { run = command_run; });
  }
  const bool prints = launched_rank() == 0;
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return prints ? app.exit(error) : 0;  // --help, --version
    if (prints) print(command_line_error(app, error, count, arguments));
    return static_cast<int>(ExitCode::job);
  }
  try {
    return static_cast<int>(run());
  } catch (const Told& told) {
    return static_cast<int>(told.code);
  } catch (const Error& error) {
    tell(error, launched_rank());
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    if (prints) print("error[X08] out of memory; 'lockstep check JOB.yaml' tells what the job needs");
    return static_cast<int>(ExitCode::internal);
  } catch (const std::exception& error) {
    print(fmt::format("error[X01] {}; this is a fault of lockstep", error.what()));
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace lockstep
