#pragma once

#include <memory>

#include "layers/metrics/metric.h"

namespace lockstep {

/// Makes a metric with Keras's defaults. A metric's own file ends with
///   template std::shared_ptr<Metric> lockstep::make_metric<metrics::BinaryAccuracy>();
/// and the list in metric.cpp names the class.
template <class T>
std::shared_ptr<Metric> make_metric() {
  return std::make_shared<T>();
}

}  // namespace lockstep
