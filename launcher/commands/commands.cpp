#include "launcher/commands/command.h"

namespace lockstep {

Command train_command();
Command evaluate_command();
Command predict_command();
Command extract_command();
Command summary_command();
Command check_command();
Command verify_command();
Command inspect_command();
Command list_command();
Command schema_command();
Command bench_command();

/// Every command: one line each, in the order of --help.
const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      train_command(),
      evaluate_command(),
      predict_command(),
      check_command(),
      summary_command(),
      inspect_command(),
      verify_command(),
      extract_command(),
      list_command(),
      schema_command(),
      bench_command(),
  };
  return list;
}

}  // namespace lockstep
