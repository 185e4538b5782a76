#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "io/yaml/yaml.h"
#include "launcher/job_file/load.h"

namespace lockstep {
namespace {

/// A folder of job files.
class JobFile : public testing::Test {
 protected:
  JobFile() : folder_(std::filesystem::temp_directory_path() / ("lockstep_job_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "sub");
  }
  ~JobFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string in_folder(const std::string& name) const { return folder_ / name; }
  LoadedJob load(const std::string& text, const std::vector<std::string>& overrides = {}) const { return load_job(write("job.yaml", text), overrides); }
  std::vector<Problem> problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    try {
      load(text, overrides);
    } catch (const Error& error) {
      return error.problems();
    }
    ADD_FAILURE() << "accepted: " << text;
    return {{}};
  }
  /// Without the folder.
  std::string place_of(const Problem& problem) const {
    const std::string prefix = folder_.string() + "/";
    return problem.place.starts_with(prefix) ? problem.place.substr(prefix.size()) : problem.place;
  }

  std::filesystem::path folder_;
};

Value tree_of(const Job& job) { return FieldType<Job>::write(job); }

constexpr const char* whole_job =
    "name: fashion\n"
    "seed: 7\n"
    "launch: {ranks: 2, devices: [0, 1]}\n"
    "device: cpu\n"
    "model:\n"
    "  inputs: [{name: image, shape: [28, 28], dtype: uint8}]\n"
    "  layers:\n"
    "    - {name: logits, type: Dense, units: 10}\n"
    "  outputs: [logits]\n"
    "restore:\n"
    "  from: pretrained.keras\n"
    "  custom_objects: {\"my_package>Tower\": tower}\n"
    "  allow_missing: [head*]\n"
    "data:\n"
    "  train: {format: idx, inputs: {image: x.gz}, targets: {logits: /abs/y.gz}}\n"
    "  validation: {format: hdf5, path: [a.h5, b.h5], inputs: {image: /data/x}, targets: {logits: /data/y}}\n"
    "train:\n"
    "  epochs: 5\n"
    "  global_batch: 128\n"
    "  optimizer: {type: Adam, learning_rate: 0.001}\n"
    "  losses: {logits: {type: SparseCategoricalCrossentropy, from_logits: true}}\n"
    "  loss_scale: 1024\n"
    "  callbacks: [{type: EarlyStopping, patience: 3}]\n"
    "watchdog: {limit_seconds: 12.5}\n"
    "faults: [{kind: kill, rank: 1, step: 3}]\n";

TEST_F(JobFile, IsReadWithDefaultsForWhatItLeavesOut) {
  const LoadedJob loaded = load(whole_job);
  const Job& job = loaded.job;
  EXPECT_EQ(job.name, "fashion");
  EXPECT_EQ(job.seed, 7);
  EXPECT_EQ(job.launch.ranks, 2);
  EXPECT_EQ(job.launch.devices, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(job.reduction, "exact");
  EXPECT_EQ(job.restore.custom_objects.at("my_package>Tower"), "tower");
  EXPECT_EQ(job.restore.optimizer, "auto");
  EXPECT_EQ(job.train.epochs, 5);
  EXPECT_EQ(job.train.steps, std::nullopt);
  EXPECT_TRUE(job.train.shuffle);
  EXPECT_EQ(job.train.loss_scale.kind, LossScale::Kind::fixed);
  EXPECT_EQ(job.train.loss_scale.scale, 1024);
  EXPECT_EQ(job.watchdog.limit_seconds.number, 12.5);
  EXPECT_EQ(job.checkpoint.keep, 3);
  EXPECT_FALSE(job.data.test.given());
  ASSERT_EQ(job.faults.size(), 1U);
  EXPECT_EQ(job.faults[0].kind, "kill");
  EXPECT_EQ(job.model.at("layers").as_list()[0].at("units").place().line, 8);
  EXPECT_EQ(loaded.folder, folder_.string());
}

TEST_F(JobFile, PathsBeginAtTheFolderOfTheFileInWhichTheyAreWritten) {
  write("sub/site.yaml", "restore: {from: models/m.keras}\ndata: {test: {format: npy, inputs: x.npy, targets: y.npy}}\nplugins: [lib/libmine.so, libother.so]\n");
  const LoadedJob loaded = load("include: sub/site.yaml\nname: a\ndata:\n  train: {inputs: {image: x.gz}, targets: [/abs/y.gz]}\n  validation: {format: hdf5, path: [a.h5, '../*.h5'], inputs: {image: data/x}}\ncheckpoint: {every_steps: 1}\n", {"model={from: net.json}"});
  const Job& job = loaded.job;
  EXPECT_EQ(job.restore.from, in_folder("sub/models/m.keras"));
  EXPECT_EQ(job.data.test.description.at("inputs").as_string(), in_folder("sub/x.npy"));
  EXPECT_EQ(job.data.train.description.at("inputs").at("image").as_string(), in_folder("x.gz"));
  EXPECT_EQ(job.data.train.description.at("targets").as_list()[0].as_string(), "/abs/y.gz");
  EXPECT_EQ(job.data.validation.description.at("path").as_list()[0].as_string(), in_folder("a.h5"));
  EXPECT_EQ(job.data.validation.description.at("path").as_list()[1].as_string(), folder_.parent_path().string() + "/*.h5");
  EXPECT_EQ(job.data.validation.description.at("inputs").at("image").as_string(), "data/x");
  EXPECT_EQ(job.model.at("from").as_string(), (std::filesystem::current_path() / "net.json").string());
  EXPECT_EQ(job.plugins, (std::vector<std::string>{in_folder("sub/lib/libmine.so"), "libother.so"}));
  EXPECT_EQ(job.run_folder, in_folder("runs/a"));
  EXPECT_EQ(load("checkpoint: {resume: runs/b}\nrun_folder: x\n").job.checkpoint.resume, in_folder("runs/b"));
  EXPECT_EQ(load("checkpoint: {resume: never}\n").job.checkpoint.resume, "never");
  EXPECT_EQ(load("seed: 1\n").job.name, "job");
}

TEST_F(JobFile, IncludesAreMergedDeeplyInOrderUnderTheFilesOwnKeys) {
  write("base.yaml", "seed: 1\ntrain: {epochs: 1, optimizer: {type: Adam, beta_1: 0.5}, callbacks: [{type: A}]}\n");
  write("sub/more.yaml", "include: [../base.yaml]\ntrain: {epochs: 2, log_every_steps: 3}\n");
  const LoadedJob loaded = load("include: [sub/more.yaml]\ntrain:\n  optimizer: {beta_1: 0.75}\n  callbacks: []\n");
  EXPECT_EQ(loaded.job.seed, 1);
  EXPECT_EQ(loaded.job.train.epochs, 2);
  EXPECT_EQ(loaded.job.train.log_every_steps, 3);
  EXPECT_EQ(loaded.job.train.optimizer, Value(Value::Map{{"type", "Adam"}, {"beta_1", 0.75}}));
  EXPECT_EQ(loaded.job.train.callbacks.size(), 0U);
  EXPECT_EQ(loaded.job.train.optimizer.at("type").place().text(), in_folder("base.yaml") + ":2:38");
  EXPECT_EQ(loaded.job.train.optimizer.at("beta_1").place().text(), in_folder("job.yaml") + ":3:23");
  EXPECT_EQ(loaded.files, (std::vector<std::string>{in_folder("job.yaml"), in_folder("sub/more.yaml"), in_folder("base.yaml")}));
}

TEST_F(JobFile, IncludesThatCannotBeReadAreToldWhereTheyAreWritten) {
  write("a.yaml", "include: [b.yaml]\n");
  write("b.yaml", "include: [a.yaml]\n");
  write("bad.yaml", "seed: 010\n");
  Problem problem = problems_of("include: [a.yaml]\n").front();
  EXPECT_EQ(problem.code, "Y24");
  EXPECT_EQ(place_of(problem), "b.yaml:1:11");
  EXPECT_EQ(problem.message, "include cycle: a.yaml -> b.yaml -> a.yaml");
  problem = problems_of("include:\n  - none.yaml\n").front();
  EXPECT_EQ(problem.code, "Y01");
  EXPECT_EQ(place_of(problem), "job.yaml:2:5");
  problem = problems_of("include: bad.yaml\n").front();
  EXPECT_EQ(problem.code, "Y15");
  EXPECT_EQ(place_of(problem), "bad.yaml:1:7");
  EXPECT_EQ(problems_of("include: [3]\n").front().code, "Y12");
}

TEST_F(JobFile, VariablesComeFromTheEnvironment) {
  ::setenv("LOCKSTEP_TEST_FOLDER", "/data", 1);
  ::unsetenv("LOCKSTEP_TEST_UNSET");
  EXPECT_EQ(load("run_folder: ${LOCKSTEP_TEST_FOLDER}/x${LOCKSTEP_TEST_FOLDER}\n").job.run_folder, "/data/x/data");
  EXPECT_EQ(load("name: a$${b}$c\n").job.name, "a${b}$c");
  EXPECT_EQ(load("seed: 1\n", {"name=${LOCKSTEP_TEST_FOLDER}", "name=z"}).job.name, "z");
  const std::vector<Problem> problems = problems_of("name: ${LOCKSTEP_TEST_UNSET}\ndata: {train: {path: \"${1x}\"}}\nmodel: {from: '${A'}\ntrain: {epoch: 1}\n", {"seed=${LOCKSTEP_TEST_UNSET}"});
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_EQ(problems[0].text(), "error[Y40] " + in_folder("job.yaml") + ":1:7: environment variable LOCKSTEP_TEST_UNSET is not set\n  name: ${LOCKSTEP_TEST_UNSET}\n        ^");
  EXPECT_EQ(problems[1].code, "Y40");
  EXPECT_EQ(place_of(problems[1]), "job.yaml:2:22");
  EXPECT_EQ(problems[2].code, "Y40");
  EXPECT_EQ(problems[3].text(), "error[Y40] command line: 'seed=${LOCKSTEP_TEST_UNSET}': environment variable LOCKSTEP_TEST_UNSET is not set");
  EXPECT_EQ(problems[4].code, "Y09");
}

TEST_F(JobFile, RefusesWrongKeysAndValuesWithTheWayOut) {
  const struct {
    std::string text;
    std::string code;
    std::string place;
    std::string fragment;
  } rows[] = {
      {"train:\n  epoch: 5\n", "Y09", "job.yaml:2:3", "unknown key 'epoch' in 'train'; did you mean 'epochs'?"},
      {"zzzzz: 5\n", "Y09", "job.yaml:1:1", "unknown key 'zzzzz' in the top level"},
      {"data: {train: {pth: a}}\n", "Y09", "job.yaml:1:16", "unknown key 'pth' in 'data.train'; did you mean 'path'?"},
      {"optimizer: adam\n", "Y10", "job.yaml:1:1", "'optimizer' belongs under 'train', not at the top"},
      {"optimizer: reset\n", "Y10", "job.yaml:1:1", "'optimizer' belongs under 'restore' or under 'train', not at the top"},
      {"restore: {global_batch: 3}\n", "Y10", "job.yaml:1:11", "'global_batch' belongs under 'train', not under 'restore'"},
      {"train: {seed: 3}\n", "Y10", "job.yaml:1:9", "'seed' belongs at the top, not under 'train'"},
      {"every_steps: 3\n", "Y10", "job.yaml:1:1", "'every_steps' belongs under 'checkpoint' or under 'audit', not at the top"},
      {"data: {train: {shuffle: true}}\n", "Y10", "job.yaml:1:16", "'shuffle' belongs under 'train', not under 'data.train'"},
      {"batch_size: 32\n", "Y10", "job.yaml:1:1", "write global_batch (rows of one weight update, all replicas together)"},
      {"train:\n  batch_size: 32\n", "Y10", "job.yaml:2:3", "write global_batch"},
      {"data: {train: {batch_size: 32}}\n", "Y10", "job.yaml:1:16", "write global_batch"},
      {"model: {inputs: [{name: x, batch_size: 32}]}\n", "Y10", "job.yaml:1:28", "write global_batch"},
      {"train: {optimizer: {type: Adam, batch_size: 32}}\n", "Y10", "job.yaml:1:33", "write global_batch"},
      {"train: {epochs: three}\n", "Y12", "job.yaml:1:17", "train.epochs: expected an integer, found \"three\""},
      {"train: [1]\n", "Y12", "job.yaml:1:8", "'train' must be a mapping, found a list"},
      {"train: {shuffle: 1}\n", "Y12", "job.yaml:1:18", "train.shuffle: expected true or false, found 1"},
      {"restore: {allow_missing: head}\n", "Y12", "job.yaml:1:26", "restore.allow_missing: expected a list, found \"head\""},
      {"watchdog: {limit_seconds: soon}\n", "Y12", "job.yaml:1:27", "watchdog.limit_seconds: expected a number or auto, found \"soon\""},
      {"train: {loss_scale: static}\n", "Y12", "job.yaml:1:21", "expected auto, dynamic, none or a number"},
      {"train: {loss_scale: -1}\n", "Y13", "job.yaml:1:21", "train.loss_scale: must be > 0, found -1"},
      {"watchdog: {limit_seconds: 0}\n", "Y13", "job.yaml:1:27", "watchdog.limit_seconds: must be > 0, found 0"},
      {"train: {global_batch: 0}\n", "Y13", "job.yaml:1:23", "train.global_batch: must be >= 1, found 0"},
      {"checkpoint: {keep: 1}\n", "Y13", "job.yaml:1:20", "checkpoint.keep: must be >= 2, found 1"},
      {"device: gpu\n", "Y13", "job.yaml:1:9", "device: unknown 'gpu'; did you mean 'cpu'?; known: auto, cpu, cuda"},
      {"checkpoint: {signals: [TERM, KILL]}\n", "Y13", "job.yaml:1:30", "checkpoint.signals[1]: unknown 'KILL'"},
      {"name: a/b\n", "Y13", "job.yaml:1:7", "name: must be a name that a folder can have"},
      {"train: {epochs: 1e3}\n", "Y17", "job.yaml:1:17", "train.epochs: expected an integer, found 1000.0; write 1000"},
      {"train: {epochs: 3.0}\n", "Y17", "job.yaml:1:17", "write 3"},
      {"faults: [{rank: 3}]\n", "Y11", "job.yaml:1:10", "'faults[0].kind' is required"},
      {"restore:\n  from: a.keras\ncheckpoint:\n  resume: runs/x\n", "Y42", "job.yaml:4:11", "choose one: checkpoint.resume (line 4) or restore.from (line 2)"},
  };
  for (const auto& row : rows) {
    const std::vector<Problem> problems = problems_of(row.text);
    EXPECT_EQ(problems.size(), 1U) << row.text;
    EXPECT_EQ(problems.front().code, row.code) << problems.front().text();
    EXPECT_EQ(place_of(problems.front()), row.place) << problems.front().text();
    EXPECT_NE(problems.front().message.find(row.fragment), std::string::npos) << problems.front().text();
  }
}

TEST_F(JobFile, TellsAllProblemsAtOnce) {
  const std::vector<Problem> problems = problems_of("optimizer: adam\ntrain: {epoch: 1, steps: x}\nseed: -1\n", {"~none", "train.replicas=0"});
  std::vector<std::string> codes;
  for (const Problem& problem : problems) codes.push_back(problem.code);
  std::sort(codes.begin(), codes.end());
  EXPECT_EQ(codes, (std::vector<std::string>{"Y09", "Y10", "Y12", "Y13", "Y41", "Y41"}));
}

TEST_F(JobFile, LayersAndCustomTypesMayUseAnyKey) {
  const LoadedJob loaded = load("custom_layers: {mine: {parameters: {batch_size: 3, epochs: 1}}}\nmodel: {layers: [{type: mine, batch_size: 3}]}\n");
  EXPECT_EQ(loaded.job.model.at("layers").as_list()[0].at("batch_size"), Value(3));
}

TEST_F(JobFile, OverridesSetAddAndTakeOutKeys) {
  const LoadedJob loaded = load(whole_job, {"train.epochs=3", "model.layers[0].units=20", "+model.layers[0].use_bias=false", "+model.layers[1]={name: more, type: Flatten}", "~train.callbacks", "~launch.devices[0]", "train.steps=~", "audit.every_steps=7", "restore.rename={a: b}", "name=x=y", "data.test.inputs=[a, b]"});
  const Job& job = loaded.job;
  EXPECT_EQ(job.train.epochs, 3);
  EXPECT_EQ(job.model.at("layers").as_list()[0], Value(Value::Map{{"name", "logits"}, {"type", "Dense"}, {"units", 20}, {"use_bias", false}}));
  EXPECT_EQ(job.model.at("layers").as_list()[1].at("type"), Value("Flatten"));
  EXPECT_EQ(job.train.callbacks.size(), 0U);
  EXPECT_EQ(job.launch.devices, std::vector<int64_t>{1});
  EXPECT_EQ(job.audit.every_steps, 7);
  EXPECT_EQ(job.restore.rename.at("a"), "b");
  EXPECT_EQ(job.name, "x=y");
  EXPECT_TRUE(job.data.test.given());
  EXPECT_EQ(loaded.resolved.at("train").at("epochs").place().text(), "command line: 'train.epochs=3'");
}

TEST_F(JobFile, RefusesBadOverrides) {
  const struct {
    std::string override;
    std::string fragment;
  } rows[] = {
      {"train.epochs=abc", "train.epochs: expected an integer, found \"abc\""},
      {"train.epoch=3", "no such key 'train.epoch'; did you mean 'epochs'?"},
      {"train.optimizer.learning_rat=1", "no such key 'train.optimizer.learning_rat'; did you mean 'learning_rate'?"},
      {"train.optimizer.momentum=1", "no such key 'train.optimizer.momentum'; +train.optimizer.momentum=... adds it"},
      {"+train.epoch=3", "unknown key 'epoch' in 'train'; did you mean 'epochs'?"},
      {"name.x=3", "no such key 'name.x': 'name' is \"fashion\", not a mapping"},
      {"model.layers[4].units=3", "no such key 'model.layers[4]': the list has 1 items, counted from 0"},
      {"train[0]=3", "'train' is a mapping, not a list"},
      {"train.epochs", "expected key.path=value"},
      {"=3", "a key is missing"},
      {"train..epochs=3", "a key is missing"},
      {"model.layers[x]=3", "an index is no number"},
      {"model.layers[0=3", "a bracket is wrong"},
      {"~train.epoch", "no such key 'train.epoch'; did you mean 'epochs'?"},
      {"train.shuffle=yes", "write true or false"},
      {"train.callbacks=[1", "'[' opened at 1:1 is never closed"},
      {"train.global_batch=0", "must be >= 1"},
      {"include=[a.yaml]", "files are included by the job file only"},
  };
  for (const auto& row : rows) {
    const std::vector<Problem> problems = problems_of(whole_job, {row.override});
    EXPECT_EQ(problems.size(), 1U) << row.override;
    EXPECT_EQ(problems.front().code, "Y41") << problems.front().text();
    EXPECT_EQ(problems.front().place, "command line: '" + row.override + "'") << problems.front().text();
    EXPECT_NE(problems.front().message.find(row.fragment), std::string::npos) << problems.front().text();
  }
}

TEST_F(JobFile, CommandsRequireTheirOwnKeys) {
  const auto missing = [&](const std::string& text, const std::string& command) {
    std::string told;
    try {
      require_keys(load(text), command);
    } catch (const Error& error) {
      for (const Problem& problem : error.problems()) told += problem.code + " " + place_of(problem) + " " + problem.message.substr(0, problem.message.find(" is required")) + "; ";
    }
    return told;
  };
  EXPECT_EQ(missing(whole_job, "train"), "");
  EXPECT_EQ(missing(whole_job, "evaluate"), "");
  EXPECT_EQ(missing("seed: 1\n", "predict"), "Y11 job.yaml:1:1 'model'; ");
  EXPECT_EQ(missing("restore: {from: m.keras}\n", "predict"), "");
  EXPECT_EQ(missing("model: {from: m.json}\ntrain:\n  shuffle: true\n", "train"), "Y11 job.yaml:1:1 'data.train'; Y11 job.yaml:3:3 'train.global_batch'; Y11 job.yaml:3:3 'train.epochs' or 'train.steps'; ");
  EXPECT_EQ(missing("model: {from: m.json}\n", "evaluate"), "Y11 job.yaml:1:1 'data.test' or 'data.validation'; ");
  EXPECT_EQ(missing("model: {from: m}\ndata: {train: {inputs: x}}\ntrain: {epochs: 1, steps: 2, global_batch: 3}\n", "train"), "Y42 job.yaml:3:27 choose one: train.epochs or train.steps; ");
}

TEST_F(JobFile, ResolvedYamlNamesOriginsAndLoadsAsTheSameJob) {
  write("base.yaml", "\nseed: 9\n");
  const LoadedJob loaded = load(std::string("include: base.yaml\n") + std::string(whole_job).substr(std::string("name: fashion\nseed: 7\n").size()), {"train.replicas=4", "name=a$${b} # c"});
  const std::string text = resolved_yaml(loaded);
  const auto has = [&](const std::string& line) { EXPECT_NE(text.find("\n" + line + "\n"), std::string::npos) << line << " in\n"
                                                                                                              << text; };
  has("seed: 9  # " + in_folder("base.yaml") + ":2");
  has("  epochs: 5  # " + in_folder("job.yaml") + ":17");
  has("  replicas: 4  # command line");
  has("  shuffle: true  # default");
  has("  devices: [0, 1]  # " + in_folder("job.yaml") + ":2");
  has("  from: " + in_folder("pretrained.keras") + "  # " + in_folder("job.yaml") + ":10");
  has("name: \"a$${b}\"  # command line");
  const LoadedJob again = load_job(write("sub/config.resolved.yaml", text));
  EXPECT_EQ(tree_of(again.job), tree_of(loaded.job));
  EXPECT_EQ(again.resolved, loaded.resolved);
  EXPECT_EQ(again.job.name, "a${b}");
}

TEST_F(JobFile, ReferenceIsGeneratedAndLoadsAsTheDefaults) {
  const std::string path = std::string(SOURCE_ROOT) + "/configs/reference.yaml";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), reference_yaml()) << "configs/reference.yaml is not the program's: write reference_yaml() there";
  Job defaults;
  defaults.name = "reference";
  defaults.run_folder = std::string(SOURCE_ROOT) + "/configs/runs/reference";
  EXPECT_EQ(tree_of(load_job(path).job), tree_of(defaults));
}

/// Every path of keys that the schema names.
std::vector<std::vector<std::string>> paths_of(const Value& schema) {
  std::vector<std::vector<std::string>> paths;
  for (const std::string& key : members_of(schema)) {
    paths.push_back({key});
    for (std::vector<std::string> path : paths_of(*member_schema(schema, key))) {
      path.insert(path.begin(), key);
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

TEST_F(JobFile, EveryMisspeltKeyIsToldWithTheRightOne) {
  const std::vector<std::vector<std::string>> paths = paths_of(job_schema());
  EXPECT_GT(paths.size(), 70U);
  for (const std::vector<std::string>& path : paths) {
    Value tree = Value(Value::Map{{path.back() + "x", Value()}});
    for (size_t i = path.size() - 1; i > 0; --i) tree = Value(Value::Map{{path[i - 1], tree}});
    const Problem problem = problems_of(write_yaml(tree)).front();
    EXPECT_EQ(problem.code, "Y09") << problem.text();
    EXPECT_NE(problem.message.find("did you mean '" + path.back() + "'?"), std::string::npos) << problem.text();
    EXPECT_EQ(place_of(problem), "job.yaml:" + std::to_string(path.size()) + ":" + std::to_string(2 * path.size() - 1));
  }
}

TEST_F(JobFile, SchemaKnowsTypesBoundsAndChoices) {
  const Value schema = job_schema();
  EXPECT_EQ(schema.at("$schema"), Value("https://json-schema.org/draft/2020-12/schema"));
  EXPECT_EQ(schema.at("additionalProperties"), Value(false));
  const Value& signals = *member_schema(*member_schema(schema, "checkpoint"), "signals");
  EXPECT_EQ(signals.at("items").at("enum").size(), 5U);
  const Value& epochs = *member_schema(*member_schema(schema, "train"), "epochs");
  EXPECT_EQ(epochs.at("anyOf").as_list()[0], Value(Value::Map{{"type", "integer"}, {"minimum", 1.0}}));
}

}  // namespace
}  // namespace lockstep
