#include "launcher/job/match.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/value/fields.h"

namespace lockstep {

bool matches_pattern(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') return matches_pattern(text, pattern.substr(1)) || (!text.empty() && matches_pattern(text.substr(1), pattern));
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) && matches_pattern(text.substr(1), pattern.substr(1));
}

namespace {

/// A tensor's names after `rename`.
struct Names {
  std::string layer;
  std::string variable;
  std::string object_path;
  bool renamed = false;
};

/// `old` or what lies below it, replaced.
std::optional<std::string> replaced(const std::string& path, const std::string& from, const std::string& to) {
  if (path == from) return to;
  if (path.size() > from.size() && path.compare(0, from.size(), from) == 0 && path[from.size()] == '/') return to + path.substr(from.size());
  return std::nullopt;
}

Names names_of_tensor(const StoredTensor& tensor, const MatchRules& rules) {
  Names names{tensor.layer, tensor.variable, tensor.object_path, false};
  for (const auto& [from, to] : rules.rename) {
    if (const auto layer = replaced(names.layer, from, to)) return {*layer, tensor.variable, {}, true};
    if (const auto layer = replaced(names.object_path, from, to)) return {*layer, tensor.variable, {}, true};
    if (const auto layer = replaced(names.object_path, "layers/" + from, to)) return {*layer, tensor.variable, {}, true};
  }
  return names;
}

bool any_pattern(std::string_view text, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches_pattern(text, pattern); });
}

class Matcher {
 public:
  Matcher(const StoredModel& stored, const std::vector<WeightKeys>& weights, const MatchRules& rules) : stored_(stored), weights_(weights), rules_(rules), filled_by_(weights.size()) {
    for (const StoredTensor& tensor : stored.tensors) names_.push_back(names_of_tensor(tensor, rules));
  }

  Match run() {
    std::vector<std::optional<size_t>> found(names_.size());
    std::vector<bool> position(names_.size(), false);
    for (size_t t = 0; t < names_.size(); ++t) found[t] = by_name(t);
    if (stored_.rule == NamingRule::layer_order) settle_layers_by_order(found, position);
    for (size_t t = 0; t < names_.size(); ++t) {
      if (!found[t]) {
        found[t] = by_structure(t);
        position[t] = found[t].has_value() && names_[t].layer.empty();
      }
    }
    settle_last_resort(found, position);
    Match match;
    size_t matched = 0;
    for (size_t t = 0; t < names_.size(); ++t) {
      if (!found[t]) {
        unused(t, match);
        continue;
      }
      ++matched;
      fill(*found[t], t, position[t]);
    }
    if (matched == 0 && !stored_.tensors.empty() && !weights_.empty()) nothing_matched();
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (filled_by_[w]) {
        match.pairs.push_back({w, filled_by_[w]->tensor, filled_by_[w]->by_position});
      } else if (any_pattern(weights_[w].path, rules_.allow_missing) || any_pattern(weights_[w].layer, rules_.allow_missing)) {
        match.missing.push_back(w);
      } else {
        missing(w);
      }
    }
    problems_.raise();
    return match;
  }

 private:
  bool is_tensorflow() const { return stored_.format == "saved-model" || stored_.format == "tf-checkpoint"; }
  std::string code(const char* hdf5, const char* tensorflow) const { return is_tensorflow() ? tensorflow : hdf5; }
  std::string place(size_t tensor) const { return fmt::format("{}: {}", stored_.file, printable(stored_.tensors[tensor].source)); }

  std::optional<size_t> find_path(std::string_view path) const {
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (weights_[w].path == path) return w;
    }
    return std::nullopt;
  }

  /// The one weight whose path ends with these components.
  std::optional<size_t> find_suffix(const std::string& path) const {
    std::optional<size_t> only;
    for (size_t w = 0; w < weights_.size(); ++w) {
      const std::string& mine = weights_[w].path;
      const bool ends = mine.size() > path.size() && mine.ends_with(path) && mine[mine.size() - path.size() - 1] == '/';
      if (!ends) continue;
      if (only) return std::nullopt;
      only = w;
    }
    return only;
  }

  std::optional<size_t> by_name(size_t t) const {
    const Names& names = names_[t];
    const StoredTensor& tensor = stored_.tensors[t];
    if (names.layer.empty()) return std::nullopt;
    if (!names.variable.empty()) {
      std::string path = names.layer + "/" + names.variable;
      if (const auto found = find_path(path)) return found;
      // A file may put the model's own name, or a wrapper's, in front.
      for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        const std::string rest = path.substr(slash + 1);
        if (rest.find('/') == std::string::npos) break;
        if (const auto found = find_path(rest)) return found;
      }
      if (const auto found = find_suffix(path)) return found;
      return std::nullopt;
    }
    // The layer is known, its variables are numbered.
    for (size_t w = 0; w < weights_.size(); ++w) {
      if (weights_[w].layer == names.layer && weights_[w].object_index == tensor.index) return w;
    }
    std::optional<size_t> only;
    for (size_t w = 0; w < weights_.size(); ++w) {
      const std::string& layer = weights_[w].layer;
      if (weights_[w].object_index != tensor.index || !layer.ends_with("/" + names.layer)) continue;
      if (weights_[w].object_path == names.object_path) return w;
      if (only) return std::nullopt;
      only = w;
    }
    return only;
  }

  /// Legacy files: a layer whose weights are not all known by name takes them in Keras's order.
  void settle_layers_by_order(std::vector<std::optional<size_t>>& found, std::vector<bool>& position) {
    std::set<std::string> layers;
    for (const Names& names : names_) layers.insert(names.layer);
    for (const std::string& layer : layers) {
      std::vector<size_t> mine;
      std::set<size_t> targets;
      bool all = true;
      for (size_t t = 0; t < names_.size(); ++t) {
        if (names_[t].layer != layer) continue;
        mine.push_back(t);
        all = all && found[t] && weights_[*found[t]].top_layer == layer && targets.insert(*found[t]).second;
      }
      if (all) continue;
      std::vector<size_t> own(mine.size(), weights_.size());
      size_t count = 0;
      for (size_t w = 0; w < weights_.size(); ++w) {
        if (weights_[w].top_layer != layer) continue;
        ++count;
        if (static_cast<size_t>(weights_[w].legacy_index) < own.size()) own[static_cast<size_t>(weights_[w].legacy_index)] = w;
      }
      if (count == 0) continue;
      if (count != mine.size()) {
        std::string names;
        for (const WeightKeys& weight : weights_) {
          if (weight.top_layer == layer) names += (names.empty() ? "" : ", ") + weight.name;
        }
        problems_.add({code("H32", "S32"), stored_.file, fmt::format("{}: the file has {} weights, the layer has {} ({})", printable(layer), mine.size(), count, names), {}});
      }
      std::sort(mine.begin(), mine.end(), [&](size_t a, size_t b) { return stored_.tensors[a].index < stored_.tensors[b].index; });
      for (size_t i = 0; i < mine.size(); ++i) {
        found[mine[i]].reset();
        if (own[i] < weights_.size()) {
          found[mine[i]] = own[i];
          position[mine[i]] = true;
        }
      }
    }
  }

  /// By where the layer stands in the model's structure. A file that names its layers must agree.
  std::optional<size_t> by_structure(size_t t) {
    const Names& names = names_[t];
    const StoredTensor& tensor = stored_.tensors[t];
    if (names.object_path.empty()) return std::nullopt;
    for (size_t w = 0; w < weights_.size(); ++w) {
      const WeightKeys& weight = weights_[w];
      const bool keras3 = weight.object_path == names.object_path && weight.object_index == tensor.index;
      const bool keras2 = !weight.keras2_path.empty() && weight.keras2_path == names.object_path && (names.variable.empty() ? weight.object_index == tensor.index : weight.name == names.variable);
      if (!keras3 && !keras2) continue;
      const std::string last = weight.layer.substr(weight.layer.rfind('/') + 1);
      const std::string file_last = names.layer.substr(names.layer.rfind('/') + 1);
      if (!file_last.empty() && file_last != last) {
        problems_.add({code("H31", "S31"), place(t), fmt::format("the file's layer '{}' would load into '{}'; if that is meant, add restore.rename: {{{}: {}}}", printable(file_last), weight.layer, printable(names.layer), weight.layer), {}});
      }
      return w;
    }
    return std::nullopt;
  }

  /// What is left: by the attribute's own name ("layers/dense" for the layer `dense`), then a variable's name that stands once in the file and once in the
  /// model ("demo/kernel", where the file has the model's name in the place of the layer's). Shapes must agree.
  void settle_last_resort(std::vector<std::optional<size_t>>& found, std::vector<bool>& position) const {
    std::vector<bool> taken(weights_.size(), false);
    for (const auto& weight : found) {
      if (weight) taken[*weight] = true;
    }
    const auto settle = [&](const auto& fits) {
      for (size_t t = 0; t < names_.size(); ++t) {
        if (found[t]) continue;
        std::vector<size_t> candidates;
        for (size_t w = 0; w < weights_.size(); ++w) {
          if (!taken[w] && fits(t, w) && weights_[w].type.shape == stored_.tensors[t].type.shape) candidates.push_back(w);
        }
        if (candidates.size() != 1) continue;
        found[t] = candidates[0];
        position[t] = true;
        taken[candidates[0]] = true;
      }
    };
    settle([&](size_t t, size_t w) {
      const std::string& path = names_[t].object_path;
      return names_[t].layer.empty() && !path.empty() && path.substr(path.rfind('/') + 1) == weights_[w].layer && weights_[w].object_index == stored_.tensors[t].index;
    });
    const auto once = [&](size_t t) {
      return std::count_if(names_.begin(), names_.end(), [&](const Names& other) { return other.variable == names_[t].variable; }) == 1;
    };
    settle([&](size_t t, size_t w) { return stored_.rule == NamingRule::names && !names_[t].variable.empty() && once(t) && weights_[w].name == names_[t].variable; });
  }

  void fill(size_t weight, size_t t, bool by_position) {
    const StoredTensor& tensor = stored_.tensors[t];
    const WeightKeys& keys = weights_[weight];
    if (filled_by_[weight]) {
      problems_.add({code("H31", "S31"), place(t), fmt::format("'{}' is filled twice: by this and by {}; add restore.rename or restore.allow_unused", keys.path, printable(stored_.tensors[filled_by_[weight]->tensor].source)), {}});
      return;
    }
    filled_by_[weight] = Match::Pair{weight, t, by_position};
    if (tensor.type.shape != keys.type.shape) {
      const Shape reversed(tensor.type.shape.rbegin(), tensor.type.shape.rend());
      const char* hint = reversed == keys.type.shape && reversed.size() > 1 ? "; it looks transposed" : "";
      problems_.add({code("H13", "S13"), place(t), fmt::format("shape mismatch for '{}': the file has {}, the model {}{}", keys.path, text_of(tensor.type.shape), text_of(keys.type.shape), hint), {}});
    }
    const bool kinds_agree = is_floating(tensor.type.dtype) == is_floating(keys.type.dtype);
    if (!kinds_agree && !rules_.allow_cast) {
      problems_.add({code("H15", "S17"), place(t), fmt::format("dtype mismatch for '{}': the file has {}, the model {}; restore.allow_cast: true converts", keys.path, name_of(tensor.type.dtype), name_of(keys.type.dtype)), {}});
    }
  }

  void unused(size_t t, Match& match) {
    const StoredTensor& tensor = stored_.tensors[t];
    const std::string& shown = tensor.layer.empty() ? tensor.object_path : tensor.layer;
    if (any_pattern(shown, rules_.allow_unused) || any_pattern(tensor.source, rules_.allow_unused)) {
      match.unused.push_back(t);
      return;
    }
    std::vector<std::string> layers;
    for (const WeightKeys& weight : weights_) layers.push_back(weight.layer);
    problems_.add({code("H30", "S30"), place(t), fmt::format("not in the model: layer '{}', {}{}; map it with restore.rename: {{{}: LAYER}}, or skip it with restore.allow_unused: [\"{}\"]", printable(shown), tensor.type.text(), did_you_mean(shown, layers), printable(shown), printable(shown)), {}});
  }

  void missing(size_t w) {
    std::set<std::string> layers;
    for (const Names& names : names_) layers.insert(names.layer.empty() ? names.object_path : names.layer);
    std::string listed;
    size_t shown = 0;
    for (const std::string& layer : layers) {
      if (++shown > 8) break;
      listed += (listed.empty() ? "" : ", ") + printable(layer);
    }
    problems_.add({code("H29", "S29"), stored_.file, fmt::format("missing in the file: '{}', {} (layers in the file: {}{}); map a name with restore.rename, or keep fresh values with restore.allow_missing: [\"{}\"]", weights_[w].path, weights_[w].type.text(), listed, layers.size() > 8 ? ", ..." : "", weights_[w].path), {}});
  }

  [[noreturn]] void nothing_matched() const {
    std::vector<std::string> here;
    for (const WeightKeys& weight : weights_) here.push_back(weight.path);
    std::string pairs;
    for (size_t t = 0; t < stored_.tensors.size() && t < 3; ++t) {
      const StoredTensor& tensor = stored_.tensors[t];
      const std::string name = tensor.layer.empty() ? tensor.source : tensor.layer + "/" + tensor.variable;
      const std::string near = nearest(name, here);
      pairs += fmt::format("{}'{}' (nearest here: '{}')", pairs.empty() ? "" : ", ", printable(name), near.empty() ? here[std::min(t, here.size() - 1)] : near);
    }
    throw Error(code("H29", "S29"), stored_.file, fmt::format("0 of {} tensors matched the model's {} weights: the names have nothing in common: {}. Is it the file of another model? restore.rename maps names; missing: '{}'", stored_.tensors.size(), weights_.size(), pairs, here.front()));
  }

  const StoredModel& stored_;
  const std::vector<WeightKeys>& weights_;
  const MatchRules& rules_;
  std::vector<Names> names_;
  std::vector<std::optional<Match::Pair>> filled_by_;
  Problems problems_;
};

}  // namespace

Match match_tensors(const StoredModel& stored, const std::vector<WeightKeys>& weights, const MatchRules& rules) { return Matcher(stored, weights, rules).run(); }

}  // namespace lockstep
