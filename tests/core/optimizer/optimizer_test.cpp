// Golden numbers: keras 3.15.1, three steps from {1, -2, 0.5} with gradients (s + 1) {0.1, -0.2, 3}.

#include "core/optimizer/optimizer.h"

#include <array>

#include <gtest/gtest.h>

#include "core/error/error.h"

namespace lockstep {
namespace {

std::array<float, 3> after_three_steps(const Value& config) {
  const auto optimizer = make_optimizer(config);
  std::array<float, 3> weights = {1, -2, 0.5};
  std::vector<std::array<float, 3>> slots(optimizer->slots().size());
  for (int64_t s = 0; s < 3; ++s) {
    const auto factor = static_cast<float>(s + 1);
    const std::array<float, 3> gradients = {0.1f * factor, -0.2f * factor, 3.0f * factor};
    std::vector<void*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data());
    optimizer->update({DType::f32, 3, weights.data(), gradients.data(), pointers}, {optimizer->learning_rate_at(s), s});
  }
  return weights;
}

struct Row {
  const char* name;
  Value config;
  std::array<float, 3> expected;
};

Value config(Value::Map members) { return Value(std::move(members)); }

TEST(Optimizer, StepsAsKerasDoes) {
  const Value cosine = config({{"type", "CosineDecay"}, {"initial_learning_rate", 0.1}, {"decay_steps", 10}, {"alpha", 0.1}});
  const std::vector<Row> rows = {
      {"SGD", config({{"type", "SGD"}, {"learning_rate", 0.1}}), {0.940000057220459f, -1.880000114440918f, -1.3000000715255737f}},
      {"momentum", config({{"type", "SGD"}, {"learning_rate", 0.1}, {"momentum", 0.9}}), {0.9049000144004822f, -1.8098000288009644f, -2.3530001640319824f}},
      {"nesterov", config({{"type", "SGD"}, {"learning_rate", 0.1}, {"momentum", 0.9}, {"nesterov", true}}), {0.8544099926948547f, -1.7088199853897095f, -3.8677000999450684f}},
      {"Adam", config({{"type", "Adam"}, {"learning_rate", 0.1}}), {0.7076889276504517f, -1.7076863050460815f, 0.20768380165100098f}},
      {"amsgrad", config({{"type", "Adam"}, {"learning_rate", 0.1}, {"amsgrad", true}}), {0.7076889276504517f, -1.7076863050460815f, 0.20768380165100098f}},
      {"weight_decay", config({{"type", "Adam"}, {"learning_rate", 0.1}, {"weight_decay", 0.01}}), {0.7049884796142578f, -1.7019888162612915f, 0.20648178458213806f}},
      {"clipvalue", config({{"type", "SGD"}, {"learning_rate", 0.1}, {"clipvalue", 0.5}}), {0.940000057220459f, -1.8900001049041748f, 0.34999996423721313f}},
      {"CosineDecay", config({{"type", "SGD"}, {"learning_rate", cosine}}), {0.9430187940597534f, -1.8860375881195068f, -1.2094371318817139f}},
  };
  for (const Row& row : rows) {
    const std::array<float, 3> found = after_three_steps(row.config);
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], row.expected[i], 2e-6 * std::abs(row.expected[i]) + 1e-7) << row.name << " element " << i;
  }
}

TEST(Optimizer, AnElementDoesNotDependOnItsPlace) {
  const auto optimizer = make_optimizer("adam");
  std::vector<float> weights(37, 0.3f), gradients(37, 0.07f), m(37, 0.01f), v(37, 0.002f);
  std::array<void*, 2> slots = {m.data(), v.data()};
  optimizer->update({DType::f32, 37, weights.data(), gradients.data(), slots}, {0.001, 4});
  for (const float weight : weights) EXPECT_EQ(weight, weights[0]);
}

TEST(Schedule, CosineDecayWarmsUpAsKeras) {
  const auto schedule = make_schedule(config({{"type", "CosineDecay"}, {"initial_learning_rate", 0.1}, {"decay_steps", 10}, {"alpha", 0.1}, {"warmup_target", 0.5}, {"warmup_steps", 4}}));
  const std::vector<std::pair<int64_t, double>> expected = {{0, 0.1}, {2, 0.3}, {4, 0.5}, {9, 0.275}, {14, 0.05}, {20, 0.05}};
  for (const auto& [step, rate] : expected) EXPECT_NEAR(schedule->at(step), rate, 1e-7) << step;
}

TEST(Optimizer, ReadsKerasConfigsAndWritesThem) {
  const Value keras = config({{"module", "keras.optimizers"}, {"class_name", "Adam"}, {"config", config({{"name", "adam"}, {"learning_rate", 0.01}, {"beta_1", 0.8}, {"clipnorm", Value()}, {"use_ema", false}})}, {"registered_name", Value()}});
  const Value written = to_keras(*make_optimizer(keras));
  EXPECT_EQ(written.at("class_name").as_string(), "Adam");
  EXPECT_EQ(written.at("config").at("beta_1").as_number(), 0.8);
  EXPECT_EQ(to_keras(*make_optimizer(written)), written);
}

TEST(Optimizer, NamesTheNearestClassAndKey) {
  const auto message = [](const Value& value) -> std::string {
    try {
      make_optimizer(value);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message("adm").find("error[Y19] unknown optimizer 'adm'; did you mean 'Adam'?"), std::string::npos) << message("adm");
  const std::string key = message(config({{"type", "Adam"}, {"momentum", 0.9}}));
  EXPECT_NE(key.find("momentum"), std::string::npos);
  EXPECT_NE(key.find("error[Y39]"), std::string::npos) << key;
}

}  // namespace
}  // namespace lockstep
