#include "launcher/job/liveness.h"

#include <algorithm>
#include <map>
#include <set>

#include <unistd.h>

#include <fmt/format.h>

#include "core/error/error.h"
#include "io/json/json.h"
#include "launcher/job/mirror.h"

namespace lockstep {

namespace {

Value write(const LiveReplica& live) {
  const LivenessRecord& r = live.record;
  Value shape = Value::list();
  for (const int64_t size : r.type.shape) shape.push_back(size);
  return Value(Value::Map{{"replica", r.replica}, {"rank", r.rank}, {"host", live.host}, {"process", live.process}, {"device", r.device}, {"layer", r.layer}, {"dtype", name_of(r.type.dtype)}, {"shape", std::move(shape)}, {"output_hash", r.hash}});
}

LiveReplica read(const Value& value) {
  LiveReplica live;
  live.host = value.at("host").as_string();
  live.process = value.at("process").as_integer();
  LivenessRecord& r = live.record;
  r.replica = static_cast<int>(value.at("replica").as_integer());
  r.rank = static_cast<int>(value.at("rank").as_integer());
  r.device = value.at("device").as_string();
  r.layer = value.at("layer").as_string();
  r.type.dtype = *dtype_from_name(value.at("dtype").as_string());
  for (const Value& size : value.at("shape").as_list()) r.type.shape.push_back(size.as_integer());
  r.hash = value.at("output_hash").as_string();
  return live;
}

void check_devices(const std::vector<std::string>& devices, const std::vector<std::string>& hosts) {
  std::map<std::pair<std::string, std::string>, int> used;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const auto [found, fresh] = used.emplace(std::pair(hosts[rank], devices[rank]), static_cast<int>(rank));
    if (!fresh) throw Error("L10", "", fmt::format("rank {} and rank {} share one device, {} on {}: a rank needs its own. Start fewer ranks there, or make more devices visible", found->second, rank, devices[rank], hosts[rank]));
  }
}

}  // namespace

std::vector<LiveReplica> gather_liveness(Communicator& communicator, const Replicas& replicas, const std::vector<LivenessRecord>& mine, size_t outputs, const std::string& device) {
  const std::string& host = communicator.hosts()[static_cast<size_t>(communicator.rank())];
  check_devices(communicator.all_gather(device, "comparing devices"), communicator.hosts());
  Value list = Value::list();
  for (const LivenessRecord& record : mine) list.push_back(write({record, host, ::getpid()}));
  std::vector<LiveReplica> all;
  for (const std::string& text : communicator.all_gather(write_json(list), "gathering the liveness records")) {
    const Value records = read_json_text("liveness records", text, "X09");
    for (const Value& value : records.as_list()) all.push_back(read(value));
  }
  std::stable_sort(all.begin(), all.end(), [](const LiveReplica& a, const LiveReplica& b) { return a.record.replica < b.record.replica; });

  std::set<int> silent;
  for (int replica = 0; replica < replicas.count; ++replica) {
    const int rank = replicas.rank_of(replica);
    const auto records = std::count_if(all.begin(), all.end(), [&](const LiveReplica& live) { return live.record.replica == replica && live.record.rank == rank; });
    if (static_cast<size_t>(records) != outputs) silent.insert(rank);
  }
  if (!silent.empty()) {
    const std::vector<int> ranks(silent.begin(), silent.end());
    throw Error("P21", "", fmt::format("{} did not run the warm-up: {} of {} replicas are live. Nothing was trained; start again, and look at the log of {}", ranks_text(ranks), all.size() / std::max<size_t>(1, outputs), replicas.count, communicator.hosts()[static_cast<size_t>(ranks.front())]));
  }
  for (size_t output = 0; output < outputs; ++output) {
    std::vector<std::string> hashes(static_cast<size_t>(communicator.size()));
    for (int replica = 0; replica < replicas.count; ++replica) {
      const LiveReplica& live = all[static_cast<size_t>(replica) * outputs + output];
      hashes[static_cast<size_t>(live.record.rank)] += live.record.hash;
    }
    // Ranks may host different numbers of replicas: compare one hash of each, and all of a rank's own.
    std::vector<std::string> first;
    for (const std::string& text : hashes) first.push_back(text.substr(0, 16));
    std::vector<int> odd = odd_ranks(first);
    for (size_t rank = 0; rank < hashes.size(); ++rank) {
      for (size_t i = 16; i < hashes[rank].size(); i += 16) {
        if (hashes[rank].compare(i, 16, first[rank]) != 0 && std::find(odd.begin(), odd.end(), static_cast<int>(rank)) == odd.end()) odd.push_back(static_cast<int>(rank));
      }
    }
    if (!odd.empty()) throw Error("P22", all[output].record.layer, fmt::format("{} computed another output than the others from the same probe and weights: the replicas are not mirrored. Nothing was trained", ranks_text(odd)));
  }
  return all;
}

std::string liveness_line(const std::vector<LiveReplica>& replicas, int count, int ranks) {
  std::set<int> live;
  std::set<std::string> devices;
  for (const LiveReplica& each : replicas) {
    live.insert(each.record.replica);
    devices.insert(each.host + " " + each.record.device);
  }
  std::string line = fmt::format("{} of {} replicas live on {} rank{}, {} device{}", live.size(), count, ranks, ranks == 1 ? "" : "s", devices.size(), devices.size() == 1 ? "" : "s");
  if (devices.size() < live.size()) {
    const size_t most = (live.size() + devices.size() - 1) / devices.size();
    line += devices.size() == 1 ? fmt::format(" ({} share it)", live.size()) : fmt::format(" (up to {} share one)", most);
  }
  return line;
}

Value liveness_value(const std::vector<LiveReplica>& replicas) {
  Value list = Value::list();
  for (const LiveReplica& live : replicas) list.push_back(write(live));
  return list;
}

}  // namespace lockstep
