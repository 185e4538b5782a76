#include "core/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "core/error/error.h"
#include "core/trainer/feed.h"

namespace lockstep {

struct Trainer::Compiled {
  std::unique_ptr<Program> program;
  struct Feed {
    size_t part = 0;
    size_t input = 0;
    RowSource::Role role = RowSource::Role::input;
    std::string name;
    Range rows;  // of the global batch
    size_t column = 0;
    const RowSource* resolved_for = nullptr;
  };
  std::vector<Feed> feeds;
  std::vector<bool> empty;  // by part: a replica without rows
};

Trainer::Trainer(Communicator& communicator, Options options, TraceStep trace, MirroredState& state, const Optimizer& optimizer)
    : communicator_(communicator), options_(std::move(options)), trace_(std::move(trace)), state_(state), optimizer_(optimizer) {
  context_.seed = options_.seed;
  const size_t slot_count = optimizer_.slots().size();
  for (size_t g = 0; g < state_.groups().size(); ++g) {
    const MirroredState::Group& group = state_.groups()[g];
    reducers_.push_back(communicator_.make_reducer(group.dtype, group.elements, options_.replicas));
    slices_.push_back(reducers_.back()->slice(communicator_.rank()));
    std::vector<Tensor>& slots = slots_.emplace_back();
    for (size_t s = 0; s < slot_count; ++s) {
      Tensor slot({DType::f64, {slices_.back().size()}});
      std::ranges::fill(slot.as<double>(), optimizer_.initial_slot(s));
      slots.push_back(cast(slot, group.dtype));
    }
    takes_.push_back([this, g](int64_t first, std::span<const std::byte> sums) { take(g, first, sums); });
  }
}

Trainer::~Trainer() = default;

namespace {

/// Index of the first element that is infinite or not a number, or -1. Looks at exponents as integers, so that the loop vectorises.
template <class T>
int64_t first_not_finite(const T* values, int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  constexpr Bits exponent = std::is_same_v<T, double> ? static_cast<Bits>(0x7ff0000000000000u) : std::is_same_v<T, float> ? static_cast<Bits>(0x7f800000u) : std::is_same_v<T, BFloat16> ? static_cast<Bits>(0x7f80u) : static_cast<Bits>(0x7c00u);
  const auto* bits = reinterpret_cast<const Bits*>(values);
  Bits found = 0;
  for (int64_t i = 0; i < count; ++i) found |= static_cast<Bits>((bits[i] & exponent) == exponent);
  if (!found) return -1;
  int64_t i = 0;
  while ((bits[i] & exponent) != exponent) ++i;
  return i;
}

}  // namespace

/// Updates the run of this rank's slice that starts at element `first` from its sums.
void Trainer::take(size_t group, int64_t first, std::span<const std::byte> sums) {
  MirroredState::Group& own = state_.groups()[group];
  const auto width = static_cast<int64_t>(size_of(own.dtype));
  const int64_t count = static_cast<int64_t>(sums.size()) / width;
  std::byte* weights = own.values.bytes().data() + first * width;
  const int64_t trained = std::clamp<int64_t>(own.trainable_elements - first, 0, count);
  if (trained > 0) {
    if (not_finite_element_ < 0) {
      visit_floating(own.dtype, [&]<class T>(Tag<T>) {
        const int64_t found = first_not_finite(reinterpret_cast<const T*>(sums.data()), trained);
        if (found < 0) return;
        not_finite_element_ = first + found;
        not_finite_group_ = group;
      });
    }
    void* slots[8] = {};
    for (size_t s = 0; s < slots_[group].size(); ++s) slots[s] = slots_[group][s].bytes().data() + (first - slices_[group].begin) * width;
    optimizer_.update({own.dtype, trained, weights, sums.data(), {slots, slots_[group].size()}}, update_step_);
  }
  // Moving statistics: the mean over the replicas that have rows.
  if (trained < count && active_replicas_ > 0) {
    visit_floating(own.dtype, [&]<class T>(Tag<T>) {
      const auto* sum = reinterpret_cast<const T*>(sums.data());
      auto* value = reinterpret_cast<T*>(weights);
      const auto active = static_cast<ComputeType<T>>(active_replicas_);
      for (int64_t i = trained; i < count; ++i) value[i] = T(static_cast<ComputeType<T>>(sum[i]) / active);
    });
  }
}

std::string Trainer::not_finite_variable() const {
  if (not_finite_element_ < 0) return {};
  for (const MirroredState::Segment& segment : state_.groups()[not_finite_group_].segments) {
    if (not_finite_element_ >= segment.offset && not_finite_element_ < segment.offset + segment.count) return state_.variables()[segment.variable].path;
  }
  return {};
}

void Trainer::lay_out_totals(const TracedStep& step) {
  if (totals_) return;
  for (const TracedStep::Report& report : step.reports) {
    const auto size = static_cast<size_t>(report.value.type().elements());
    report_sizes_.emplace_back(report.name, size);
    report_.reports[report.name].resize(size);
    report_values_ += size;
  }
  constexpr size_t active_and_control = 4;
  totals_ = communicator_.make_replica_sum(DType::f64, static_cast<int64_t>(report_values_ + active_and_control), options_.replicas);
}

Trainer::Compiled& Trainer::compiled(int64_t global_rows) {
  std::unique_ptr<Compiled>& entry = programs_[global_rows];
  if (entry) return *entry;
  auto made = std::make_unique<Compiled>();
  std::map<int64_t, std::shared_ptr<const TracedStep>> steps;  // by a replica's rows
  std::vector<ReplicaPart> parts;
  const Range hosted_here = hosted();
  for (int64_t replica = hosted_here.begin; replica < hosted_here.end; ++replica) {
    const auto local = static_cast<int>(replica - hosted_here.begin);
    const Range rows = rows_of_replica(global_rows, static_cast<int>(replica), options_.replicas.count);
    std::shared_ptr<const TracedStep>& step = steps[rows.size()];
    if (!step) step = std::make_shared<const TracedStep>(trace_({rows.size(), global_rows}));
    lay_out_totals(*step);
    ReplicaPart part;
    part.step = step;
    part.context = {static_cast<int>(replica), options_.replicas.count, communicator_.rank(), rows, options_.device};
    bind_variables(part, state_);
    const auto place = [&](const std::string& variable, Symbol value) {
      const MirroredState::Location location = state_.location(state_.index_of(variable));
      std::byte* base = reducers_[static_cast<size_t>(location.group)]->contribution(local).data();
      part.targets.push_back({value.id(), base + static_cast<size_t>(location.offset) * size_of(value.dtype())});
    };
    for (const TracedStep::Gradient& gradient : step->gradients) place(gradient.variable, gradient.value);
    for (const TracedStep::Update& update : step->updates) place(update.variable, update.value);
    std::byte* totals = totals_->contribution(local).data();
    for (const TracedStep::Report& report : step->reports) {
      part.targets.push_back({report.value.id(), totals});
      totals += report.value.type().bytes();
    }
    for (size_t i = 0; i < step->inputs.size(); ++i) {
      Compiled::Feed feed;
      feed.part = parts.size();
      feed.input = i;
      feed.role = step->inputs[i].role;
      feed.name = step->inputs[i].name;
      feed.rows = rows;
      made->feeds.push_back(std::move(feed));
    }
    made->empty.push_back(rows.size() == 0);
    parts.push_back(std::move(part));
  }
  made->program = std::make_unique<Program>(std::move(parts), communicator_, options_.replicas, context_);
  entry = std::move(made);
  return *entry;
}

void Trainer::prepare(int64_t global_rows) { compiled(global_rows); }

void Trainer::load(Compiled& compiled, const RowSource& source, std::span<const int64_t> rows) {
  for (Compiled::Feed& feed : compiled.feeds) {
    if (feed.resolved_for != &source) {
      feed.column = column_of(source, feed.role, feed.name);
      feed.resolved_for = &source;
    }
    source.read(feed.column, rows.subspan(static_cast<size_t>(feed.rows.begin), static_cast<size_t>(feed.rows.size())), compiled.program->input(feed.part, feed.input));
  }
}

const StepReport& Trainer::step(int64_t step, const RowSource& source, std::span<const int64_t> rows, const ControlWord& mine) {
  Compiled& now = compiled(static_cast<int64_t>(rows.size()));
  load(now, source, rows);
  for (const auto& reducer : reducers_) reducer->begin();
  context_.step = step;
  context_.warm_up = false;
  now.program->run();

  for (size_t p = 0; p < now.program->parts(); ++p) {
    const auto local = static_cast<int>(p);
    if (now.empty[p]) {  // no rows: no statistics; its gradients are sums over nothing, zeros already
      for (size_t g = 0; g < reducers_.size(); ++g) {
        const MirroredState::Group& group = state_.groups()[g];
        const size_t width = size_of(group.dtype);
        std::byte* begin = reducers_[g]->contribution(local).data();
        std::memset(begin + static_cast<size_t>(group.trainable_elements) * width, 0, static_cast<size_t>(group.elements - group.trainable_elements) * width);
      }
    }
    // The rank's words ride with its first replica, so that they are counted once a rank.
    auto* totals = reinterpret_cast<double*>(totals_->contribution(local).data()) + report_values_;
    totals[0] = now.empty[p] ? 0 : 1;
    totals[1] = p == 0 ? mine.stop : 0;
    totals[2] = p == 0 ? mine.checkpoint : 0;
    totals[3] = p == 0 ? (not_finite_element_ >= 0 ? 1 : 0) : 0;
  }
  const std::span<const std::byte> bytes = totals_->run();
  const auto* totals = reinterpret_cast<const double*>(bytes.data());

  StepReport& report = report_;
  size_t position = 0;
  for (const auto& [name, size] : report_sizes_) {
    std::copy_n(totals + position, size, report.reports[name].begin());
    position += size;
  }
  active_replicas_ = totals[position];
  report.control = {totals[position + 1], totals[position + 2], totals[position + 3]};
  const auto valid = report.reports.find(options_.valid_report);
  report.updated = valid == report.reports.end() || valid->second[0] != 0;
  if (report.updated) {
    update_step_ = {optimizer_.learning_rate_at(iteration_), iteration_};
    for (size_t g = 0; g < reducers_.size(); ++g) {
      reducers_[g]->reduce_scatter(takes_[g]);
      reducers_[g]->all_gather(state_.groups()[g].values.bytes());
    }
    ++iteration_;
  }
  return report;
}

std::vector<std::vector<Tensor>> Trainer::gather_slots() {
  const size_t slot_count = optimizer_.slots().size();
  std::vector<std::vector<Tensor>> result;
  for (size_t s = 0; s < slot_count; ++s) {
    std::vector<Tensor> by_variable(state_.variables().size());
    for (size_t g = 0; g < reducers_.size(); ++g) {
      const std::span<const std::byte> mine = slots_[g][s].bytes();
      const std::vector<std::string> pieces = communicator_.gather({reinterpret_cast<const char*>(mine.data()), mine.size()}, "gathering the optimizer's slots");
      if (communicator_.rank() != 0) continue;
      std::string whole;
      for (const std::string& piece : pieces) whole += piece;
      const MirroredState::Group& group = state_.groups()[g];
      for (const MirroredState::Segment& segment : group.segments) {
        if (segment.offset >= group.trainable_elements) continue;
        Tensor slot(state_.variables()[segment.variable].type);
        std::memcpy(slot.bytes().data(), whole.data() + static_cast<size_t>(segment.offset) * size_of(group.dtype), slot.type().bytes());
        by_variable[segment.variable] = std::move(slot);
      }
    }
    result.push_back(std::move(by_variable));
  }
  if (communicator_.rank() != 0) result.clear();
  return result;
}

void Trainer::scatter_slots(const std::vector<std::vector<Tensor>>& slots) {
  for (size_t s = 0; s < slots.size() && s < optimizer_.slots().size(); ++s) {
    for (size_t g = 0; g < reducers_.size(); ++g) {
      const MirroredState::Group& group = state_.groups()[g];
      const Range slice = slices_[g];
      const auto width = static_cast<int64_t>(size_of(group.dtype));
      for (const MirroredState::Segment& segment : group.segments) {
        const Tensor& value = slots[s][segment.variable];
        if (segment.offset >= group.trainable_elements || !value.valid()) continue;
        if (value.elements() != segment.count || value.dtype() != group.dtype) throw Error("X07", state_.variables()[segment.variable].path, "a slot of another size than its variable");
        const int64_t begin = std::max(slice.begin, segment.offset);
        const int64_t end = std::min(slice.end, segment.offset + segment.count);
        if (begin >= end) continue;
        std::memcpy(slots_[g][s].bytes().data() + (begin - slice.begin) * width, value.bytes().data() + (begin - segment.offset) * width, static_cast<size_t>((end - begin) * width));
      }
    }
  }
}

}  // namespace lockstep
