#include "layers/initializer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/random/philox.h"
#include "layers/fields.h"
#include "layers/identifier.h"

namespace lockstep {

namespace {

/// Null: the job's seed; a number, or the generator that Keras wraps one in.
struct Seed {
  std::optional<int64_t> number;
  Value written;
};

}  // namespace

template <>
struct FieldType<Seed> {
  static Seed read(const Value& value, const std::string& path) {
    if (value.is_null()) return {};
    const Value* config = value.is_map() ? value.find("config") : nullptr;
    const Value* seed = config && config->is_map() ? config->find("seed") : nullptr;
    if (value.is_map() && !seed) fail_at(value.place(), "Y12", fmt::format("{}: expected an integer or Keras's SeedGenerator with its config, found {}", path, value.described()));
    if (seed && seed->is_null()) return {{}, value};
    return {FieldType<int64_t>::read(seed ? *seed : value, path), value};
  }
  static Value write(const Seed& seed) { return seed.written; }
  static Value schema() { return Value(Value::Map{{"type", Value(Value::List{"integer", "object", "null"})}}); }
};

namespace {

Tensor filled(const TensorType& type, const std::function<double(uint64_t element)>& value) {
  Tensor wide({DType::f64, type.shape});
  uint64_t element = 0;
  for (double& x : wide.as<double>()) x = value(element++);
  return cast(wide, type.dtype);
}

/// The same value everywhere.
struct Constant : Initializer {
  std::string_view type() const override { return "Constant"; }
  void fields(Fields& fields) override {
    fields.add("value", value, "the value of every element");
    fields.ignore("dtype");  // Keras 2; the weight has its own
  }
  Tensor make(const TensorType& type, uint64_t, std::string_view) const override {
    return filled(type, [this](uint64_t) { return value; });
  }

  double value = 0;
};

struct Zeros final : Constant {
  std::string_view type() const override { return "Zeros"; }
  void fields(Fields& fields) override { fields.ignore("dtype"); }
};

struct Ones final : Constant {
  Ones() { value = 1; }
  std::string_view type() const override { return "Ones"; }
  void fields(Fields& fields) override { fields.ignore("dtype"); }
};

/// gain on the diagonal of a matrix, else 0.
struct IdentityMatrix final : Initializer {
  std::string_view type() const override { return "Identity"; }
  void fields(Fields& fields) override {
    fields.add("gain", gain, "the value on the diagonal");
    fields.ignore("dtype");
  }
  Tensor make(const TensorType& type, uint64_t, std::string_view path) const override {
    if (type.shape.size() != 2) throw Error("M11", std::string(path), fmt::format("the initializer Identity makes matrices, the weight is {}", text_of(type.shape)));
    const auto columns = static_cast<uint64_t>(type.shape[1]);
    return filled(type, [&](uint64_t element) { return element / columns == element % columns ? gain : 0.0; });
  }

  double gain = 1;
};

/// Draws by (seed, the weight's path, element): its own seed where it has one, else the job's.
struct Random : Initializer {
  void fields(Fields& fields) override {
    distribution_fields(fields);
    fields.add("seed", seed, "draws of its own; null: the job's seed");
    fields.ignore("dtype");
  }
  virtual void distribution_fields(Fields& fields) = 0;

  RandomKey key(uint64_t job_seed, std::string_view path) const {
    const RandomKey base{job_seed, stream_of(path)};
    return seed.number ? RandomKey{0, base.stream}.with(static_cast<uint64_t>(*seed.number)) : base;
  }

  Seed seed;
};

double truncated_normal_at(RandomKey key, uint64_t element) {
  // Values beyond two deviations are drawn again, as Keras does: 1 in 22.
  for (uint64_t attempt = 0;; ++attempt) {
    const double z = normal_at(attempt == 0 ? key : key.with(attempt), 0, element);
    if (std::abs(z) <= 2) return z;
  }
}

struct RandomNormal : Random {
  std::string_view type() const override { return "RandomNormal"; }
  void distribution_fields(Fields& fields) override {
    fields.add("mean", mean, "mean of the values");
    fields.add("stddev", stddev, "standard deviation of the values").at_least(0);
  }
  Tensor make(const TensorType& type, uint64_t job_seed, std::string_view path) const override {
    return filled(type, [this, k = key(job_seed, path)](uint64_t element) { return mean + stddev * normal_at(k, 0, element); });
  }

  double mean = 0;
  double stddev = 0.05;
};

struct TruncatedNormal final : RandomNormal {
  std::string_view type() const override { return "TruncatedNormal"; }
  Tensor make(const TensorType& type, uint64_t job_seed, std::string_view path) const override {
    return filled(type, [this, k = key(job_seed, path)](uint64_t element) { return mean + stddev * truncated_normal_at(k, element); });
  }
};

struct RandomUniform final : Random {
  std::string_view type() const override { return "RandomUniform"; }
  void distribution_fields(Fields& fields) override {
    fields.add("minval", minval, "lower bound of the values");
    fields.add("maxval", maxval, "upper bound of the values");
  }
  Tensor make(const TensorType& type, uint64_t job_seed, std::string_view path) const override {
    return filled(type, [this, k = key(job_seed, path)](uint64_t element) { return minval + (maxval - minval) * uniform_f64_at(k, 0, element); });
  }

  double minval = -0.05;
  double maxval = 0.05;
};

struct Fans {
  double in = 1;
  double out = 1;
};

/// Keras's rule: the last two axes are (in, out), those before a receptive field.
Fans fans_of(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  const double field = std::accumulate(shape.begin(), shape.end() - 2, 1.0, [](double product, int64_t size) { return product * static_cast<double>(size); });
  return {static_cast<double>(shape[shape.size() - 2]) * field, static_cast<double>(shape.back()) * field};
}

/// Variance scale / n, n counted by `mode`. Source: He et al. 2015; Glorot and Bengio 2010.
struct VarianceScaling : Random {
  VarianceScaling() = default;
  VarianceScaling(double scale, std::string mode, std::string distribution) : scale(scale), mode(std::move(mode)), distribution(std::move(distribution)) {}
  std::string_view type() const override { return "VarianceScaling"; }
  void distribution_fields(Fields& fields) override {
    fields.add("scale", scale, "variance times n").greater_than(0);
    fields.add("mode", mode, "what n counts").one_of({"fan_in", "fan_out", "fan_avg"});
    fields.add("distribution", distribution, "normal is Keras 1's name of truncated_normal").one_of({"truncated_normal", "untruncated_normal", "uniform", "normal"});
    fans_fields(fields);
  }
  Tensor make(const TensorType& type, uint64_t job_seed, std::string_view path) const override {
    const Fans fans = fans_of(type.shape);
    const double n = mode == "fan_in" ? fans.in : mode == "fan_out" ? fans.out
                                                                    : (fans.in + fans.out) / 2;
    const double variance = scale / std::max(1.0, n);
    const RandomKey k = key(job_seed, path);
    if (distribution == "uniform") {
      const double limit = std::sqrt(3 * variance);
      return filled(type, [&](uint64_t element) { return -limit + 2 * limit * uniform_f64_at(k, 0, element); });
    }
    if (distribution == "untruncated_normal") {
      return filled(type, [&, deviation = std::sqrt(variance)](uint64_t element) { return deviation * normal_at(k, 0, element); });
    }
    // The deviation of a normal distribution cut at two of its deviations.
    constexpr double truncated_deviation = 0.87962566103423978;
    return filled(type, [&, deviation = std::sqrt(variance) / truncated_deviation](uint64_t element) { return deviation * truncated_normal_at(k, element); });
  }

  double scale = 1;
  std::string mode = "fan_in";
  std::string distribution = "truncated_normal";

 protected:
  /// Keras 3.15 writes them; fans other than by the rule are not known here.
  static void fans_fields(Fields& fields) {
    accept_null(fields, "input_axes");
    accept_null(fields, "output_axes");
  }
};

/// Keras's names for scales, modes and distributions.
struct NamedScaling final : VarianceScaling {
  NamedScaling(std::string_view name, double scale, std::string mode, std::string distribution) : VarianceScaling(scale, std::move(mode), std::move(distribution)), name_(name) {}
  std::string_view type() const override { return name_; }
  void distribution_fields(Fields& fields) override { fans_fields(fields); }

 private:
  std::string_view name_;
};

/// A matrix (product of the first axes, last axis) with orthonormal rows or columns, whichever are fewer: Q of a normal matrix whose R has a positive
/// diagonal. Source: Saxe et al. 2014.
struct OrthogonalMatrix final : Random {
  std::string_view type() const override { return "Orthogonal"; }
  void distribution_fields(Fields& fields) override { fields.add("gain", gain, "factor of the matrix"); }
  Tensor make(const TensorType& type, uint64_t job_seed, std::string_view path) const override {
    if (type.shape.size() < 2) throw Error("M11", std::string(path), fmt::format("the initializer Orthogonal needs two axes or more, the weight is {}", text_of(type.shape)));
    const auto columns = static_cast<size_t>(type.shape.back());
    const size_t rows = columns == 0 ? 0 : static_cast<size_t>(type.elements()) / columns;
    const size_t count = std::min(rows, columns);
    const size_t length = std::max(rows, columns);
    const RandomKey k = key(job_seed, path);
    std::vector<std::vector<double>> q(count, std::vector<double>(length));
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < length; ++j) q[i][j] = normal_at(k, i, j);
      // Gram and Schmidt, twice: once leaves what rounding left.
      for (int pass = 0; pass < 2; ++pass) {
        for (size_t before = 0; before < i; ++before) {
          const double dot = std::inner_product(q[i].begin(), q[i].end(), q[before].begin(), 0.0);
          for (size_t j = 0; j < length; ++j) q[i][j] -= dot * q[before][j];
        }
        const double norm = std::sqrt(std::inner_product(q[i].begin(), q[i].end(), q[i].begin(), 0.0));
        for (double& x : q[i]) x /= norm;
      }
    }
    return filled(type, [&](uint64_t element) {
      const size_t row = element / columns, column = element % columns;
      return gain * (rows >= columns ? q[column][row] : q[row][column]);
    });
  }

  double gain = 1;
};

using Made = std::shared_ptr<Initializer>;
template <class T>
Made make() {
  return std::make_shared<T>();
}

const NamedMaker<Made> list[] = {
    {{"Zeros", "zeros", "zero"}, make<Zeros>},
    {{"Ones", "ones", "one"}, make<Ones>},
    {{"Constant", "constant"}, make<Constant>},
    {{"Identity", "IdentityInitializer", "identity", "eye"}, make<IdentityMatrix>},
    {{"Orthogonal", "OrthogonalInitializer", "orthogonal"}, make<OrthogonalMatrix>},
    {{"RandomNormal", "random_normal", "normal"}, make<RandomNormal>},
    {{"RandomUniform", "random_uniform", "uniform"}, make<RandomUniform>},
    {{"TruncatedNormal", "truncated_normal"}, make<TruncatedNormal>},
    {{"VarianceScaling", "variance_scaling"}, make<VarianceScaling>},
    {{"GlorotUniform", "glorot_uniform"}, [] { return Made(std::make_shared<NamedScaling>("GlorotUniform", 1.0, "fan_avg", "uniform")); }},
    {{"GlorotNormal", "glorot_normal"}, [] { return Made(std::make_shared<NamedScaling>("GlorotNormal", 1.0, "fan_avg", "truncated_normal")); }},
    {{"HeUniform", "he_uniform"}, [] { return Made(std::make_shared<NamedScaling>("HeUniform", 2.0, "fan_in", "uniform")); }},
    {{"HeNormal", "he_normal"}, [] { return Made(std::make_shared<NamedScaling>("HeNormal", 2.0, "fan_in", "truncated_normal")); }},
    {{"LecunUniform", "lecun_uniform"}, [] { return Made(std::make_shared<NamedScaling>("LecunUniform", 1.0, "fan_in", "uniform")); }},
    {{"LecunNormal", "lecun_normal"}, [] { return Made(std::make_shared<NamedScaling>("LecunNormal", 1.0, "fan_in", "truncated_normal")); }},
};

}  // namespace

std::shared_ptr<const Initializer> make_initializer(const Value& value) {
  const Identifier identifier = read_identifier(value, "initializer");
  Made initializer = make_named<Made>(list, identifier, "initializer");
  Fields fields;
  initializer->fields(fields);
  read_fields(identifier.config, fields, identifier.name);
  return initializer;
}

Value to_keras(const Initializer& initializer) {
  Fields fields;
  const_cast<Initializer&>(initializer).fields(fields);  // only reads
  return keras_class_config("keras.initializers", initializer.type(), write_fields(fields));
}

}  // namespace lockstep
