#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/trainer/sample_order.h"
#include "core/value/fields.h"

namespace lockstep {

/// state.json: all of a run that is not a weight or a slot. What a resumed run needs to go on with the same bits.
struct RunState {
  int64_t epoch = 0;     ///< counted from 0
  int64_t consumed = 0;  ///< samples of this epoch
  int64_t step = 0;
  int64_t samples = 0;   ///< over all epochs
  int64_t iteration = 0; ///< updates: the optimizer's raw count
  int64_t seed = 0;
  int64_t replicas = 1;
  int64_t semantics = 3;
  std::map<std::string, std::vector<double>> epoch_sums;  ///< of this epoch so far, by report
  int64_t epoch_samples = 0;                              ///< rows that epoch_sums hold
  std::string data;                                       ///< fingerprint of data.train
  Value job;                                              ///< the resolved job, to tell what changed

  void fields(Fields& fields);
  Position position() const { return {epoch, consumed, step}; }
};

/// Keys whose values differ between two resolved jobs and may not: "train.global_batch: 128, was 64". `same_data` allows other paths with equal content.
/// Of these, those of the model are never allowed (`model` says so).
struct JobChanges {
  std::vector<std::string> refused;
  std::vector<std::string> noted;
  bool model = false;
};
JobChanges compare_jobs(const Value& before, const Value& now, bool same_data);

}  // namespace lockstep
