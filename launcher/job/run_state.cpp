#include "launcher/job/run_state.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "io/json/json.h"

namespace lockstep {

void RunState::fields(Fields& fields) {
  fields.add("epoch", epoch, "Epoch that the next step belongs to, from 0.").require().at_least(0);
  fields.add("consumed", consumed, "Samples of this epoch that were consumed.").require().at_least(0);
  fields.add("step", step, "Steps made.").require().at_least(0);
  fields.add("samples", samples, "Samples consumed over all epochs.").require().at_least(0);
  fields.add("iteration", iteration, "Updates made: the optimizer's raw iteration.").require().at_least(0);
  fields.add("seed", seed, "The job's seed.").require();
  fields.add("replicas", replicas, "Logical copies that share each global batch.").require().at_least(1);
  fields.add("semantics", semantics, "Whose semantics hold: Keras 2 or 3.").require();
  fields.add("epoch_sums", epoch_sums, "Sums of the reports of this epoch so far.").require();
  fields.add("epoch_samples", epoch_samples, "Rows in those sums.").require().at_least(0);
  fields.add("data", data, "Fingerprint of the training data.").require();
  fields.add("job", job, "The resolved job.").require();
}

namespace {

bool is_below(std::string_view path, std::string_view prefix) {
  return path.substr(0, prefix.size()) == prefix && (path.size() == prefix.size() || path[prefix.size()] == '.' || path[prefix.size()] == '[');
}

/// May change on a resume: DESIGN.md section 6.
constexpr std::array<std::string_view, 13> free_keys = {"include", "name", "run_folder", "train.epochs", "train.steps", "train.log_every_steps", "checkpoint", "watchdog", "audit", "launch", "faults", "restore", "warm_up"};

void differences(const Value& before, const Value& now, const std::string& path, std::vector<std::pair<std::string, std::string>>& found) {
  if (before == now) return;
  if (before.is_map() && now.is_map()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : before.as_map()) keys.insert(key);
    for (const auto& [key, value] : now.as_map()) keys.insert(key);
    const Value nothing;
    for (const std::string& key : keys) {
      const Value* a = before.find(key);
      const Value* b = now.find(key);
      differences(a ? *a : nothing, b ? *b : nothing, join_path(path, key), found);
    }
    return;
  }
  const auto shown = [](const Value& value) {
    std::string text = value.is_null() ? "not set" : write_json(value);
    return text.size() > 60 ? text.substr(0, 57) + "..." : text;
  };
  found.emplace_back(path, fmt::format("{}: {}, was {}", path, shown(now), shown(before)));
}

}  // namespace

JobChanges compare_jobs(const Value& before, const Value& now, bool same_data) {
  std::vector<std::pair<std::string, std::string>> found;
  differences(before, now, "", found);
  JobChanges changes;
  for (const auto& [path, text] : found) {
    const auto below = [&, &path = path](std::string_view prefix) { return is_below(path, prefix); };
    if (std::any_of(free_keys.begin(), free_keys.end(), below)) continue;
    if (same_data && is_below(path, "data")) continue;
    if (is_below(path, "device")) {
      changes.noted.push_back(text + " (bits may differ)");
      continue;
    }
    changes.model = changes.model || is_below(path, "model") || is_below(path, "custom_layers");
    changes.refused.push_back(text);
  }
  return changes;
}

}  // namespace lockstep
