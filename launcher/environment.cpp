#include "launcher/environment.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/onednn/onednn.h"
#include "io/json/json.h"
#include "launcher/job/mirror.h"

namespace lockstep {

namespace {

std::string processor_model() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

Value processor_facts() { return Value(Value::Map{{"processor", processor_model()}, {"instruction_set", onednn_instruction_set()}, {"onednn", onednn_version()}}); }

Value environment(const Communicator& communicator) {
  Value hosts = Value::list();
  for (const std::string& host : communicator.hosts()) hosts.push_back(host);
  const char* job = std::getenv("SLURM_JOB_ID");
  Value result(Value::Map{{"lockstep", "0.1.0"}, {"ranks", communicator.size()}, {"hosts", std::move(hosts)}, {"slurm_job", job ? Value(job) : Value()}});
  const Value facts = processor_facts();
  for (const auto& [key, value] : facts.as_map()) result.set(key, value);
  return result;
}

std::string device_of(const Communicator& communicator, bool shared) {
  const std::vector<std::string>& hosts = communicator.hosts();
  const auto rank = static_cast<size_t>(communicator.rank());
  int local = 0;
  for (size_t r = 0; r < rank; ++r) local += hosts[r] == hosts[rank];
  if (shared && local > 0) --local;
  return fmt::format("cpu:{}", local);
}

void check_device(const std::string& device) {
  if (device == "cuda") throw Error("L05", "device", "this build computes on the CPU, and no GPU was found by it. Write device: auto or cpu; 'cmake --preset cuda' builds the kernels for CUDA");
}

void check_same_processors(Communicator& communicator) {
  const std::vector<std::string> all = communicator.all_gather(write_json(processor_facts()), "comparing processors");
  const std::vector<int> odd = odd_ranks(all);
  if (odd.empty()) return;
  const auto first = static_cast<size_t>(odd.front());
  const size_t usual = first == 0 ? 1 : 0;
  throw Error("L11", "", fmt::format("{} ({}) has another processor or oneDNN than the others: {} beside {}. Results would depend on which rank computes them; start on hosts of one kind", ranks_text(odd), communicator.hosts()[first], all[first], all[usual]));
}

}  // namespace lockstep
