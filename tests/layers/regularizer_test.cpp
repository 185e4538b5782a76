#include "layers/regularizer.h"

#include <gtest/gtest.h>

#include "tests/layers/trace.h"

namespace lockstep {
namespace {

using Map = Value::Map;

double loss_of(const Value& identifier) {
  Graph graph;
  const Symbol weight = graph.constant(f64({3, 2}, {1, 2, 3, 4, 5, -6}));
  return numbers(Evaluation().run(make_regularizer(identifier)->loss(weight)))[0];
}

TEST(Regularizer, AddsAbsoluteValuesAndSquares) {
  EXPECT_DOUBLE_EQ(loss_of("l1"), 0.01 * 21);
  EXPECT_DOUBLE_EQ(loss_of("L2"), 0.01 * 91);
  EXPECT_DOUBLE_EQ(loss_of(Map{{"type", "L1L2"}, {"l1", 0.5}, {"l2", 0.25}}), 0.5 * 21 + 0.25 * 91);
  EXPECT_EQ(loss_of("l1_l2"), 0);
}

// Numbers computed with numpy from Keras's formula.
TEST(Regularizer, MeasuresHowFarVectorsAreFromOrthogonal) {
  EXPECT_NEAR(loss_of("OrthogonalRegularizer"), 0.005383850426662761, 1e-16);
  EXPECT_NEAR(loss_of(Map{{"type", "orthogonal_regularizer"}, {"mode", "columns"}}), 0.0036140316116210053, 1e-16);
}

TEST(Regularizer, ReadsAndWritesKerassForm) {
  const Value keras(Map{{"module", "keras.regularizers"}, {"class_name", "L2"}, {"config", Map{{"l2", 0.5}}}, {"registered_name", Value()}});
  EXPECT_EQ(to_keras(*make_regularizer(keras)), keras);
}

TEST(Regularizer, TellsUnknownNamesAndNegativeFactors) {
  EXPECT_NE(thrown([] { make_regularizer("l3"); }).find("unknown regularizer 'l3'; did you mean"), std::string::npos);
  EXPECT_NE(thrown([] { make_regularizer(Map{{"type", "L2"}, {"l2", -1}}); }).find("error[Y13] L2.l2: must be >= 0, found -1"), std::string::npos) << thrown([] { make_regularizer(Map{{"type", "L2"}, {"l2", -1}}); });
}

}  // namespace
}  // namespace lockstep
