#include "launcher/job_file/sections.h"

#include <fmt/format.h>

#include "io/data/data.h"

namespace lockstep {

void LaunchSection::fields(Fields& fields) {
  fields.add("ranks", ranks, "How many ranks there must be; null: any number.").at_least(1);
  fields.add("devices", devices, "Which devices of each host the ranks must sit on, by number; null: any.").at_least(0);
}

void RestoreSection::fields(Fields& fields) {
  fields.add("from", from, "Model file, SavedModel folder, TensorFlow checkpoint prefix, or a checkpoint or run folder of ours; told by content.");
  fields.add("optimizer", optimizer, "auto: kept where the file has one of the job's class, fresh where it has none; keep: it must have one; reset: fresh.").one_of({"auto", "keep", "reset"});
  fields.add("custom_objects", custom_objects, "Class name in the file: layer type (or activation, initializer, ...) of this job; 'model' stands for the job's own model.");
  fields.add("rename", rename, "Layer name or attribute path in the file: layer name here.");
  fields.add("allow_missing", allow_missing, "Patterns (* and ?) of weights here that the file may lack; they keep their fresh values.");
  fields.add("allow_unused", allow_unused, "Patterns (* and ?) of layers or tensors in the file that may be left unread.");
  fields.add("allow_cast", allow_cast, "Whether stored integers may become floating-point weights.");
  fields.add("allow_not_finite", allow_not_finite, "Whether training may begin from weights that are not finite.");
}

void DataSection::fields(Fields& fields) {
  fields.add("train", train, "What is trained on.");
  fields.add("validation", validation, "What is evaluated after every epoch.");
  fields.add("test", test, "What 'lockstep evaluate' takes; where it is absent, validation.");
}

void TrainSection::fields(Fields& fields) {
  fields.add("epochs", epochs, "Passes over the training data; either this or steps.").at_least(1);
  fields.add("steps", steps, "Steps of the whole run; either this or epochs.").at_least(1);
  fields.add("global_batch", global_batch, "Rows of one step, all replicas together; required to train.").at_least(1);
  fields.add("replicas", replicas, "Into how many fixed shares every global batch is cut; they, not ranks, decide the result. null: the ranks of the first start.").at_least(1);
  fields.add("shuffle", shuffle, "Whether each pass has an order of its own, made from seed and epoch.");
  fields.add("drop_remainder", drop_remainder, "Whether the short batch at the end of a pass is left out.");
  fields.add("repeat_before_batch", repeat_before_batch, "Whether batches go on over the end of a pass, as tf.data's repeat().batch() does.");
  fields.add("optimizer", optimizer, "Keras identifier or {type: Adam, ...} with Keras's config keys; null: the one compiled into restore.from.");
  fields.add("losses", losses, "A loss an output, by name, as a list, or bare where there is one; null for an output without. All null: those compiled into restore.from.");
  fields.add("loss_weights", loss_weights, "What each output's loss is multiplied by, by name or as a list.");
  fields.add("class_weight", class_weight, "Weight of a sample by its class: {0: 1.0, 1: 2.5}.");
  fields.add("metrics", metrics, "Metrics of each output, by name, as a list, or bare where there is one output.");
  fields.add("loss_scale", loss_scale, "auto: dynamic where model.dtype_policy is mixed_float16, else none; dynamic; none; or a number.");
  fields.add("finalize_ema", finalize_ema, "Whether weights become their moving averages at the end, where the optimizer keeps them.");
  fields.add("callbacks", callbacks, "What acts between epochs: [{type: EarlyStopping, monitor: val_loss, patience: 3}].");
  fields.add("nan", nan, "What follows a loss or gradient that is not finite: abort the run, skip the step, or rollback to the last checkpoint.").one_of({"abort", "skip", "rollback"});
  fields.add("log_every_steps", log_every_steps, "Every how many steps a row of metrics.csv is written.").at_least(1);
}

void WarmUpSection::fields(Fields& fields) {
  fields.add("batch", batch, "Rows of the probe.").at_least(1);
  fields.add("fill", fill, "What the probe's inputs hold.").one_of({"ones", "zeros"});
  fields.add("shapes", shapes, "An input's row shape where model and data leave an axis open: {text: [128]}.").at_least(1);
}

void CheckpointSection::fields(Fields& fields) {
  fields.add("every_steps", every_steps, "Every how many steps a checkpoint is written; 0: only at the end and when told to stop.").at_least(0);
  fields.add("keep", keep, "How many checkpoints stay.").at_least(2);
  fields.add("resume", resume, "auto: from the run folder's newest checkpoint where it has one; never: afresh, a used run folder is moved away; or the folder to resume from.");
  fields.add("signals", signals, "Signals that end the run after a checkpoint.").one_of({"USR1", "USR2", "TERM", "INT", "HUP"});
}

void WatchdogSection::fields(Fields& fields) {
  fields.add("limit_seconds", limit_seconds, "Seconds that a rank may wait for the others; auto: 5 times the slowest step, at least 30.").greater_than(0);
}

void AuditSection::fields(Fields& fields) {
  fields.add("every_steps", every_steps, "Every how many steps the ranks compare the hashes of their weights; 0: only before a checkpoint.").at_least(0);
}

AutomaticNumber FieldType<AutomaticNumber>::read(const Value& value, const std::string& path) {
  if (value == Value("auto")) return {};
  if (!value.is_number()) fail_at(value.place(), "Y12", fmt::format("{}: expected a number or auto, found {}", path, value.described()));
  return {FieldType<double>::read(value, path)};
}

Value FieldType<AutomaticNumber>::schema() {
  return Value(Value::Map{{"anyOf", Value(Value::List{FieldType<double>::schema(), Value(Value::Map{{"const", "auto"}})})}});
}

LossScale FieldType<LossScale>::read(const Value& value, const std::string& path) {
  if (value == Value("auto")) return {LossScale::Kind::automatic};
  if (value == Value("none") || value.is_null()) return {LossScale::Kind::none};
  if (value == Value("dynamic")) return {LossScale::Kind::dynamic};
  if (!value.is_number()) fail_at(value.place(), "Y12", fmt::format("{}: expected auto, dynamic, none or a number, found {}", path, value.described()));
  const double scale = FieldType<double>::read(value, path);
  if (scale <= 0) fail_at(value.place(), "Y13", fmt::format("{}: must be > 0, found {}", path, value.described()));
  return {LossScale::Kind::fixed, scale};
}

Value FieldType<LossScale>::write(const LossScale& value) {
  switch (value.kind) {
    case LossScale::Kind::automatic:
      return "auto";
    case LossScale::Kind::none:
      return "none";
    case LossScale::Kind::dynamic:
      return "dynamic";
    case LossScale::Kind::fixed:
      break;
  }
  return value.scale;
}

Value FieldType<LossScale>::schema() {
  Value number(Value::Map{{"type", "number"}, {"exclusiveMinimum", 0}});
  Value word(Value::Map{{"enum", Value(Value::List{"auto", "dynamic", "none"})}});
  return Value(Value::Map{{"anyOf", Value(Value::List{std::move(number), std::move(word), Value(Value::Map{{"type", "null"}})})}});
}

DataSet FieldType<DataSet>::read(const Value& value, const std::string& path) {
  const auto description = FieldType<DataDescription>::read(value, path);
  if (FieldType<DataDescription>::write(description) == FieldType<DataDescription>::write({})) return {};
  return {value};
}

Value FieldType<DataSet>::write(const DataSet& value) {
  Value all = FieldType<DataDescription>::write({});
  if (value.given()) {
    for (const auto& [key, member] : value.description.as_map()) all.set(key, member);
  }
  return all.with_place(value.description.place());
}

Value FieldType<DataSet>::schema() { return FieldType<DataDescription>::schema(); }

}  // namespace lockstep
