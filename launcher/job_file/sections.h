#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/value/fields.h"
#include "core/value/value.h"

namespace lockstep {

/// A number, or `auto`: chosen by the program.
struct AutomaticNumber {
  std::optional<double> number;
};

/// `launch`: what the job expects of its start. Anything else is refused before data is read.
struct LaunchSection {
  std::optional<int64_t> ranks;
  std::optional<std::vector<int64_t>> devices;

  void fields(Fields& fields);
};

/// `restore`: the file that a first start begins from.
struct RestoreSection {
  std::optional<std::string> from;
  std::string optimizer = "auto";
  Value custom_objects = Value::map();
  std::map<std::string, std::string> rename;
  std::vector<std::string> allow_missing;
  std::vector<std::string> allow_unused;
  bool allow_cast = false;
  bool allow_not_finite = false;

  void fields(Fields& fields);
};

/// A data set, checked as io/data's DataDescription and kept as written, for open_data.
struct DataSet {
  Value description;  ///< a mapping; null where the job has none

  bool given() const { return !description.is_null(); }
};

/// `data`.
struct DataSection {
  DataSet train;
  DataSet validation;
  DataSet test;

  void fields(Fields& fields);
};

/// `train.loss_scale`: what the loss is multiplied by before it is differentiated.
struct LossScale {
  enum class Kind { automatic,
                    none,
                    dynamic,
                    fixed };
  Kind kind = Kind::automatic;
  double scale = 1;  ///< where fixed
};

/// `train`. Values are read by those that make the parts.
struct TrainSection {
  std::optional<int64_t> epochs;
  std::optional<int64_t> steps;
  std::optional<int64_t> global_batch;
  std::optional<int64_t> replicas;
  bool shuffle = true;
  bool drop_remainder = false;
  bool repeat_before_batch = false;
  Value optimizer;
  Value losses;
  Value loss_weights;
  Value class_weight;
  Value metrics;
  LossScale loss_scale;
  bool finalize_ema = true;
  Value callbacks = Value::list();
  std::string nan = "abort";
  int64_t log_every_steps = 10;

  void fields(Fields& fields);
};

/// `warm_up`: the probe that every replica runs before the first step.
struct WarmUpSection {
  int64_t batch = 1;
  std::string fill = "ones";
  std::map<std::string, std::vector<int64_t>> shapes;

  void fields(Fields& fields);
};

/// `checkpoint`.
struct CheckpointSection {
  int64_t every_steps = 500;
  int64_t keep = 3;
  std::string resume = "auto";  ///< auto, never, or a folder
  std::vector<std::string> signals = {"USR2", "USR1", "TERM"};

  void fields(Fields& fields);
};

/// `watchdog`.
struct WatchdogSection {
  AutomaticNumber limit_seconds;

  void fields(Fields& fields);
};

/// `audit`.
struct AuditSection {
  int64_t every_steps = 100;

  void fields(Fields& fields);
};

template <>
struct FieldType<AutomaticNumber> {
  static AutomaticNumber read(const Value& value, const std::string& path);
  static Value write(const AutomaticNumber& value) { return value.number ? Value(*value.number) : Value("auto"); }
  static Value schema();
};

template <>
struct FieldType<LossScale> {
  static LossScale read(const Value& value, const std::string& path);
  static Value write(const LossScale& value);
  static Value schema();
};

template <>
struct FieldType<DataSet> {
  /// A mapping in which nothing is set is no data set.
  static DataSet read(const Value& value, const std::string& path);
  /// Every key, those that are not given with their defaults.
  static Value write(const DataSet& value);
  static Value schema();
};

}  // namespace lockstep
