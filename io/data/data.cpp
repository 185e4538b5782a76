#include "io/data/data.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/error/error.h"
#include "io/data/column_source.h"
#include "io/data/csv.h"
#include "io/data/formats.h"
#include "io/data/requests.h"
#include "io/data/synthetic.h"
#include "io/npy/npz.h"

namespace lockstep {

namespace {

constexpr std::string_view synthetic = "synthetic";

/// Files that several columns share are opened once.
class OpenFiles {
 public:
  std::shared_ptr<const File> open(const std::string& path) {
    for (const auto& file : files_) {
      if (file->path() == path) return file;
    }
    return files_.emplace_back(std::make_shared<const File>(path));
  }
  std::function<std::string()> fingerprint() const {
    return [files = files_] { return fingerprint_of(files); };
  }

 private:
  std::vector<std::shared_ptr<const File>> files_;
};

std::unique_ptr<RowArray> joined(std::vector<std::unique_ptr<RowArray>> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<ConcatenatedArray>(std::move(parts));
}

/// Opens the arrays that requests name.
class Opener {
 public:
  Opener(const DataDescription& data, const std::string& path, const std::vector<ColumnRequest>& requests, OpenFiles& files) : files_(files) {
    const std::string file_path = join_path(path, "path");
    if (!data.path.is_null()) paths_ = files_named(data.path, file_path, "");
    folder_given_ = paths_.size() == 1 && std::filesystem::is_directory(paths_[0]);
    const bool files_given = !paths_.empty() && !folder_given_;
    if (data.format) {
      format_ = data_format(*data.format);
    } else {
      format_ = &recognised_format(*files_.open(files_given ? paths_[0] : files_of(requests.front())[0]));
    }
    if (format_->holds == DataFormat::Holds::named_arrays && !files_given) {
      const std::string problem = fmt::format("{}: format {} needs the file whose arrays 'inputs' and 'targets' name", file_path, format_->name);
      fail_at(data.path.is_null() ? requests.front().description.place() : data.path.place(), data.path.is_null() ? "Y11" : "Y13", problem);
    }
    if (format_->holds == DataFormat::Holds::one_array && files_given) {
      if (!std::filesystem::exists(paths_[0])) throw Error("D01", paths_[0], "no such folder");
      fail_at(data.path.place(), "Y13", fmt::format("{}: a file of format {} is one column, so 'inputs' and 'targets' name files; path may be their folder", file_path, format_->name));
    }
  }

  std::unique_ptr<RowArray> open(const ColumnRequest& request) const {
    std::vector<std::unique_ptr<RowArray>> parts;
    if (format_->holds == DataFormat::Holds::named_arrays) {
      const std::string array = FieldType<std::string>::read(request.description, request.path);
      for (const std::string& file : paths_) parts.push_back(format_->open(files_.open(file), array));
    } else {
      for (const std::string& file : files_of(request)) parts.push_back(format_->open(files_.open(file), ""));
    }
    return joined(std::move(parts));
  }

 private:
  std::vector<std::string> files_of(const ColumnRequest& request) const {
    std::vector<std::string> files = files_named(request.description, request.path, folder_given_ ? paths_[0] : "");
    if (files.empty()) fail_at(request.description.place(), "Y13", fmt::format("{}: expected a file, found an empty list", request.path));
    return files;
  }

  OpenFiles& files_;
  std::vector<std::string> paths_;
  bool folder_given_ = false;
  const DataFormat* format_ = nullptr;
};

std::map<std::string, DType> casts_of(const DataDescription& data, const Value& description, const std::string& path, const DataExpectation& model) {
  std::map<std::string, DType> casts;
  std::vector<std::string> names;
  for (const auto& input : model.inputs) names.push_back(input.name);
  for (const auto& output : model.outputs) names.push_back(output.name);
  Problems problems;
  for (const auto& [name, text] : data.cast) {
    const Value& value = description.at("cast").at(name);
    const std::string cast_path = join_path(join_path(path, "cast"), name);
    const std::optional<DType> dtype = dtype_from_name(text);
    if (std::ranges::find(names, name) == names.end()) {
      const Place& place = value.key_place().source ? value.key_place() : value.place();
      problems.add(problem_at(place, "Y09", fmt::format("'{}' in '{}' is no input or output of the model{}; it has: {}", printable(name), join_path(path, "cast"), did_you_mean(name, names), fmt::join(names, ", "))));
    } else if (!dtype) {
      problems.add(problem_at(value.place(), "Y13", fmt::format("{}: unknown dtype '{}'; expected a name like float32 or int64", cast_path, printable(text))));
    } else {
      casts.emplace(name, *dtype);
      for (const auto& input : model.inputs) {
        if (input.name == name && input.dtype != *dtype) problems.add(problem_at(value.place(), "D17", fmt::format("{}: the model's input is {}, so only that can be meant, found {}", cast_path, name_of(input.dtype), text)));
      }
    }
  }
  problems.raise();
  return casts;
}

BoundColumn bound(const ColumnRequest& request, std::unique_ptr<RowArray> array, const DataExpectation& model, const std::map<std::string, DType>& casts, std::vector<std::string>& notes) {
  const auto found = casts.find(request.name);
  const std::optional<DType> cast = found == casts.end() ? std::nullopt : std::optional(found->second);
  if (request.role == RowSource::Role::input) return bound_input(std::move(array), model.inputs[request.index], cast, CastHint::cast_key, request.path, notes);
  TensorType row = array->row();
  if (request.role == RowSource::Role::sample_weight) {
    row.dtype = DType::f32;
    return {{request.role, request.name, row}, std::move(array), 0};
  }
  if (cast) row.dtype = *cast;
  return {{request.role, request.name, row}, std::move(array), model.outputs[request.index].classes};
}

OpenedData open_synthetic(const DataDescription& data, const Value& description, const std::string& path, const DataExpectation& model, uint64_t seed, const std::vector<ColumnRequest>& requests) {
  Problems problems;
  if (!data.samples) problems.add(problem_at(description.place(), "Y11", fmt::format("'{}' is required: how many samples there are", join_path(path, "samples"))));
  if (!data.path.is_null()) problems.add(problem_at(data.path.place(), "Y10", fmt::format("'{}': synthetic data has no file", join_path(path, "path"))));
  if (!data.cast.empty()) problems.add(problem_at(description.at("cast").place(), "Y10", fmt::format("'{}': synthetic data has the model's dtype; write dtype in a column to change it", join_path(path, "cast"))));
  problems.raise();

  OpenedData opened;
  std::vector<BoundColumn> columns;
  std::string identity = fmt::format("{} {}", *data.samples, seed);
  for (const ColumnRequest& request : requests) {
    problems.collect([&] {
      SyntheticDefaults defaults;
      if (request.role == RowSource::Role::input) defaults = {model.inputs[request.index].row, model.inputs[request.index].dtype};
      if (request.role == RowSource::Role::target) defaults = {model.outputs[request.index].row, std::nullopt};
      columns.push_back(bound(request, synthetic_array(request.description, request.path, *data.samples, defaults, seed), model, {}, opened.notes));
      SyntheticColumn column = read_described<SyntheticColumn>(request.description, request.path);
      identity += fmt::format(" {} {} {} {} {} {} {} {}", request.path, columns.back().array->row().text(), column.fill.is_number() ? fmt::format("{}", column.fill.as_number()) : column.fill.described(), column.random.value_or(""),
                              column.low.value_or(0), column.high.value_or(1), column.mean.value_or(0), column.stddev.value_or(1));
    });
  }
  problems.raise();
  const std::string fingerprint = fmt::format("synthetic, {:016x}", XXH3_64bits(identity.data(), identity.size()));
  opened.rows = std::make_unique<ColumnSource>(std::move(columns), [fingerprint] { return fingerprint; });
  return opened;
}

/// A name as one component of a path in HDF5.
std::string encoded(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c == '%') {
      result += "%25";
    } else if (c == '/') {
      result += "%2F";
    } else {
      result += c;
    }
  }
  return result;
}

/// FILE and what follows its ':'; the file is the longest part that exists.
std::pair<std::string, std::string> split(const std::string& specification) {
  for (size_t end = specification.size(); end != std::string::npos && end > 0; end = specification.rfind(':', end - 1)) {
    if (std::filesystem::exists(specification.substr(0, end))) return {specification.substr(0, end), end < specification.size() ? specification.substr(end + 1) : ""};
  }
  return {specification.substr(0, specification.rfind(":/")), ""};
}

/// The array in the file for each input.
std::vector<std::string> array_names(const DataFormat& format, const File& file, const std::string& inner, const std::vector<DataExpectation::Input>& inputs) {
  if (format.name == "hdf5") {
    const std::string group = inner.empty() ? "/" : inner;
    if (inputs.size() == 1 && is_hdf5_dataset(file, group)) return {group};
    std::vector<std::string> names;
    for (const auto& input : inputs) names.push_back(fmt::format("{}{}{}", group, group.ends_with('/') ? "" : "/", encoded(input.name)));
    return names;
  }
  std::vector<std::string> names;
  for (const auto& input : inputs) names.push_back(input.name);
  if (inputs.size() > 1 && !inner.empty()) throw Error("Y13", "", fmt::format("--inputs {}:{}: one array for the model's {} inputs ({}); leave the name out", file.path(), printable(inner), inputs.size(), fmt::join(names, ", ")));
  if (!inner.empty()) return {inner};
  if (inputs.size() == 1) {
    const std::vector<std::string> stored = npz_names(file.path());
    if (stored.size() == 1) return stored;
  }
  return names;
}

std::vector<std::unique_ptr<RowArray>> prediction_arrays(const std::shared_ptr<const File>& file, const std::string& inner, const std::vector<DataExpectation::Input>& inputs) {
  const bool text = file->path().ends_with(".csv");
  const auto refuse = [&](const std::string& message) { throw Error("Y13", "", fmt::format("--inputs {}:{}: {}", file->path(), printable(inner), message)); };
  if (text) {
    if (!inner.empty()) refuse("a .csv file has no arrays inside");
    return open_csv(*file, inputs);
  }
  const DataFormat& format = recognised_format(*file);
  std::vector<std::unique_ptr<RowArray>> arrays;
  if (format.holds == DataFormat::Holds::one_array) {
    if (!inner.empty()) refuse(fmt::format("a file of format {} has no arrays inside", format.name));
    if (inputs.size() > 1) throw Error("D12", file->path(), fmt::format("holds one array, the model has {} inputs; give an .h5, .npz or .csv file", inputs.size()));
    arrays.push_back(format.open(file, ""));
    return arrays;
  }
  Problems problems;
  for (const std::string& name : array_names(format, *file, inner, inputs)) problems.collect([&] { arrays.push_back(format.open(file, name)); });
  problems.raise();
  return arrays;
}

}  // namespace

void DataDescription::fields(Fields& fields) {
  std::vector<std::string> formats;
  for (const DataFormat& each : data_formats()) formats.emplace_back(each.name);
  formats.emplace_back(synthetic);
  fields.add("format", format, "What the files are; told by their content where it is left out.").one_of(formats);
  fields.add("path", path, "The file whose arrays the columns name (hdf5, npz): also a glob or a list, their rows one after the other; or the folder of the columns' files (idx, npy).");
  fields.add("samples", samples, "How many samples synthetic data has.").at_least(1);
  fields.add("inputs", inputs, "Where each of the model's inputs comes from: an array's name, a file, or a description of synthetic values. Bare where there is one, else a mapping or list.");
  fields.add("targets", targets, "The same for the model's outputs; null or nothing for an output without a loss.");
  fields.add("sample_weight", sample_weight, "The weight of each sample, bare for every output, or a mapping from outputs.");
  fields.add("cast", cast, "The dtype in which a column whose stored dtype is of another kind is read.");
}

OpenedData open_data(const Value& description, const std::string& path, const DataExpectation& model, uint64_t seed) {
  const auto data = read_described<DataDescription>(description, path);
  const std::vector<ColumnRequest> requests = requests_of(data, description.place(), path, model);
  if (data.format == synthetic) return open_synthetic(data, description, path, model, seed, requests);
  if (data.samples) fail_at(description.at("samples").place(), "Y10", fmt::format("'{}' belongs to format: synthetic; files know their length", join_path(path, "samples")));
  const std::map<std::string, DType> casts = casts_of(data, description, path, model);

  OpenedData opened;
  OpenFiles files;
  const Opener opener(data, path, requests, files);
  std::vector<BoundColumn> columns;
  Problems problems;
  for (const ColumnRequest& request : requests) {
    problems.collect([&] { columns.push_back(bound(request, opener.open(request), model, casts, opened.notes)); });
  }
  problems.raise();
  opened.rows = std::make_unique<ColumnSource>(std::move(columns), files.fingerprint());
  return opened;
}

OpenedData open_inputs(const std::string& specification, const DataExpectation& model) {
  const auto [path, inner] = split(specification);
  OpenFiles files;
  std::vector<std::unique_ptr<RowArray>> arrays = prediction_arrays(files.open(path), inner, model.inputs);
  OpenedData opened;
  std::vector<BoundColumn> columns;
  Problems problems;
  for (size_t i = 0; i < arrays.size(); ++i) {
    problems.collect([&] { columns.push_back(bound_input(std::move(arrays[i]), model.inputs[i], std::nullopt, CastHint::store_it, "inputs." + model.inputs[i].name, opened.notes)); });
  }
  problems.raise();
  opened.rows = std::make_unique<ColumnSource>(std::move(columns), files.fingerprint());
  return opened;
}

}  // namespace lockstep
