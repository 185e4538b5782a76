#include "layers/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;

std::vector<double> drawn(const Value& identifier, const Shape& shape, const char* path = "layer/kernel", uint64_t seed = 1) {
  return numbers(make_initializer(identifier)->make({DType::f64, shape}, seed, path));
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  const auto count = static_cast<double>(values.size());
  m.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  for (const double x : values) {
    m.deviation += (x - m.mean) * (x - m.mean) / count;
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

TEST(Initializer, FillsWithConstants) {
  EXPECT_EQ(drawn("zeros", {2, 2}), (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(drawn("Ones", {2}), (std::vector<double>{1, 1}));
  EXPECT_EQ(drawn(Map{{"type", "Constant"}, {"value", 2.5}}, {2}), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(drawn(Map{{"type", "identity"}, {"gain", 3}}, {2, 3}), (std::vector<double>{3, 0, 0, 0, 3, 0}));
}

// Shape (50, 40, 30, 20): fans are 50 * 40 * 30 in and 50 * 40 * 20 out. 1.2 million draws: means and deviations are known to 0.5 %.
TEST(Initializer, HasTheVarianceOfKerassRules) {
  const Shape shape{50, 40, 30, 20};
  const double in = 60000, out = 40000;
  const struct {
    Value identifier;
    double deviation;
    double bound;  // no value is beyond; 0: there is none
  } cases[] = {
      {"glorot_uniform", std::sqrt(2 / (in + out)), std::sqrt(6 / (in + out))},
      {"glorot_normal", std::sqrt(2 / (in + out)), 2 * std::sqrt(2 / (in + out)) / 0.87962566103423978},
      {"he_uniform", std::sqrt(2 / in), std::sqrt(6 / in)},
      {"he_normal", std::sqrt(2 / in), 2 * std::sqrt(2 / in) / 0.87962566103423978},
      {"lecun_uniform", std::sqrt(1 / in), std::sqrt(3 / in)},
      {"lecun_normal", std::sqrt(1 / in), 2 * std::sqrt(1 / in) / 0.87962566103423978},
      {"random_normal", 0.05, 0},
      {"random_uniform", 0.05 / std::sqrt(3), 0.05},
      {"truncated_normal", 0.05 * 0.87962566103423978, 0.1},
      {Map{{"type", "VarianceScaling"}, {"scale", 3}, {"mode", "fan_out"}, {"distribution", "untruncated_normal"}}, std::sqrt(3 / out), 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.identifier.described());
    const Moments m = moments(drawn(c.identifier, shape));
    EXPECT_NEAR(m.mean, 0, 0.005 * c.deviation);
    EXPECT_NEAR(m.deviation, c.deviation, 0.005 * c.deviation);
    if (c.bound > 0) {
      EXPECT_LE(m.largest, c.bound);
      EXPECT_GT(m.largest, 0.98 * c.bound);
    }
  }
}

TEST(Initializer, CountsFansOfVectorsAndMatricesAsKerasDoes) {
  // Limits sqrt(6 / (in + out)): a vector of 6 has fans 6 and 6, a matrix (2, 4) has 2 and 4.
  for (const auto& [shape, limit] : {std::pair{Shape{6}, std::sqrt(0.5)}, std::pair{Shape{2, 4}, 1.0}}) {
    double largest = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) largest = std::max(largest, moments(drawn("glorot_uniform", shape, "w", seed)).largest);
    EXPECT_LE(largest, limit);
    EXPECT_GT(largest, 0.98 * limit);
  }
}

TEST(Initializer, DrawsByTheSeedAndThePathOfTheWeightAlone) {
  const std::vector<double> first = drawn("glorot_uniform", {3, 4});
  EXPECT_EQ(first, drawn("glorot_uniform", {3, 4}));
  EXPECT_NE(first, drawn("glorot_uniform", {3, 4}, "other/kernel"));
  EXPECT_NE(first, drawn("glorot_uniform", {3, 4}, "layer/kernel", 2));
  const Value seeded(Map{{"type", "GlorotUniform"}, {"seed", 5}});
  EXPECT_NE(first, drawn(seeded, {3, 4}));
  EXPECT_EQ(drawn(seeded, {3, 4}, "layer/kernel", 1), drawn(seeded, {3, 4}, "layer/kernel", 2)) << "its own seed takes the place of the job's";
}

TEST(Initializer, RoundsTheSameDrawsToOtherDtypes) {
  const auto initializer = make_initializer("he_normal");
  const Tensor wide = initializer->make({DType::f64, {7}}, 1, "w");
  const Tensor narrow = initializer->make({DType::f32, {7}}, 1, "w");
  EXPECT_EQ(numbers(cast(wide, DType::f32)), numbers(narrow));
}

TEST(Initializer, MakesOrthogonalMatrices) {
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{2, 2, 3}}) {
    const std::vector<double> q = drawn(Map{{"type", "Orthogonal"}, {"gain", 2}}, shape);
    const auto columns = static_cast<size_t>(shape.back());
    const size_t rows = q.size() / columns;
    const bool tall = rows >= columns;
    for (size_t a = 0; a < std::min(rows, columns); ++a) {
      for (size_t b = 0; b < std::min(rows, columns); ++b) {
        double dot = 0;
        for (size_t k = 0; k < std::max(rows, columns); ++k) dot += tall ? q[k * columns + a] * q[k * columns + b] : q[a * columns + k] * q[b * columns + k];
        EXPECT_NEAR(dot, a == b ? 4 : 0, 1e-13);
      }
    }
  }
}

TEST(Initializer, ReadsAndWritesKerassForm) {
  const Value written = to_keras(*make_initializer(Map{{"class_name", "VarianceScaling"}, {"config", Map{{"scale", 1.0}, {"mode", "fan_avg"}, {"distribution", "uniform"}, {"seed", Value()}}}}));
  EXPECT_EQ(written, Value(Map{{"module", "keras.initializers"},
                               {"class_name", "VarianceScaling"},
                               {"config", Map{{"scale", 1.0}, {"mode", "fan_avg"}, {"distribution", "uniform"}, {"seed", Value()}}},
                               {"registered_name", Value()}}));
  EXPECT_EQ(to_keras(*make_initializer(written)), written);
}

TEST(Initializer, TellsUnknownNamesAndArguments) {
  EXPECT_NE(thrown([] { make_initializer("glorot_unifrom"); }).find("error[Y30] unknown initializer 'glorot_unifrom'; did you mean 'glorot_uniform'?"), std::string::npos);
  EXPECT_NE(thrown([] { make_initializer(Map{{"type", "RandomNormal"}, {"stdev", 1}}); }).find("did you mean 'stddev'?"), std::string::npos);
  EXPECT_NE(thrown([] { make_initializer("orthogonal")->make({DType::f32, {3}}, 0, "b"); }).find("needs two axes or more"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
