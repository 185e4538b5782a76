#pragma once

#include <string>
#include <vector>

#include "launcher/job/faults.h"
#include "launcher/job_file/sections.h"

namespace lockstep {

/// A job file. Paths in it are absolute once load_job has read it.
struct Job {
  std::vector<std::string> include;  ///< empty once load_job has read it
  std::string name;
  int64_t seed = 0;
  std::string run_folder;
  LaunchSection launch;
  std::string device = "auto";
  std::string reduction = "exact";
  Value custom_layers = Value::map();
  std::vector<std::string> plugins;
  Value model;
  RestoreSection restore;
  DataSection data;
  TrainSection train;
  WarmUpSection warm_up;
  CheckpointSection checkpoint;
  WatchdogSection watchdog;
  AuditSection audit;
  std::vector<Fault> faults;

  void fields(Fields& fields);
};

/// JSON schema (draft 2020-12) of a job file.
Value job_schema();

/// configs/reference.yaml: every key with its default, what may stand there and what it means. It is itself a job file.
std::string reference_yaml();

/// The schema of a member, or null where the schema names no members (any tree may stand there) or not this one.
const Value* member_schema(const Value& schema, std::string_view key);
/// The keys that a schema names.
std::vector<std::string> members_of(const Value& schema);

}  // namespace lockstep
