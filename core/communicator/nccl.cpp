// Compiled as CUDA.
#include "core/communicator/nccl.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#include "core/communicator/tree.h"

namespace lockstep {

namespace {

/// Partial sums of a tree over up to 2^31 replicas.
constexpr int stack_size = 33;

/// Adds inputs in the order of `code`; see postfix_of.
template <class T>
__global__ void add_in_order(const T* const* inputs, const int* code, int length, int64_t count, T* out) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    if (length == 3) {
      out[i] = inputs[code[0]][i] + inputs[code[1]][i];
      continue;
    }
    T stack[stack_size];
    int top = 0;
    for (int k = 0; k < length; ++k) {
      if (code[k] >= 0) {
        stack[top++] = inputs[code[k]][i];
      } else {
        --top;
        stack[top - 1] = stack[top - 1] + stack[top];
      }
    }
    out[i] = stack[0];
  }
}

void check_cuda(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw Error("L41", "", std::string(call) + ": " + cudaGetErrorString(code));
}

/// Memory of the current device, freed at the end of a scope.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(size_t size) {
    if (size == 0) return;
    check_cuda(cudaMalloc(&memory_, size), "cudaMalloc");
    check_cuda(cudaMemset(memory_, 0, size), "cudaMemset");
  }
  ~DeviceMemory() { cudaFree(memory_); }
  DeviceMemory(DeviceMemory&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

/// A sum over a subtree whose inputs have fixed places in device memory.
class DeviceSum {
 public:
  DeviceSum(DType dtype, Range node, const std::vector<Range>& nodes, const std::vector<const std::byte*>& inputs) : dtype_(dtype) {
    const std::vector<int> code = postfix_of(node, nodes);
    length_ = static_cast<int>(code.size());
    code_ = DeviceMemory(code.size() * sizeof(int));
    inputs_ = DeviceMemory(inputs.size() * sizeof(std::byte*));
    check_cuda(cudaMemcpy(code_.data(), code.data(), code.size() * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
    check_cuda(cudaMemcpy(inputs_.data(), inputs.data(), inputs.size() * sizeof(std::byte*), cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  void start(int64_t count, std::byte* out, cudaStream_t stream) const {
    if (count == 0) return;
    switch (dtype_) {
      case DType::f32: return launch<float>(count, out, stream);
      case DType::f64: return launch<double>(count, out, stream);
      default: return launch<unsigned long long>(count, out, stream);
    }
  }

 private:
  template <class T>
  void launch(int64_t count, std::byte* out, cudaStream_t stream) const {
    constexpr int threads = 256;
    constexpr int64_t most_blocks = 4096;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>((count + threads - 1) / threads, most_blocks));
    add_in_order<T><<<blocks, threads, 0, stream>>>(reinterpret_cast<const T* const*>(inputs_.data()), reinterpret_cast<const int*>(code_.data()), length_, count,
                                                    reinterpret_cast<T*>(out));
    check_cuda(cudaGetLastError(), "add_in_order");
  }

  DType dtype_;
  int length_ = 0;
  DeviceMemory code_;
  DeviceMemory inputs_;
};

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::i64: return ncclInt64;
    default: return ncclUint64;
  }
}

/// The library's communicator. It never blocks: calls return at once and are looked at until they are through.
class Nccl {
 public:
  Nccl(Communicator& communicator, int device, double limit_seconds) : communicator_(communicator), limit_(limit_seconds) {
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
    const std::string id_bytes = on_root(communicator, "NCCL id", [] {
      ncclUniqueId id;
      if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess) throw Error("L41", "", std::string("ncclGetUniqueId: ") + ncclGetErrorString(code));
      return std::string(reinterpret_cast<const char*>(&id), sizeof(id));
    });
    ncclUniqueId id;
    std::memcpy(&id, id_bytes.data(), sizeof(id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      finish(ncclCommInitRankConfig(&comm_, communicator.size(), id, communicator.rank(), &config), "NCCL start");
    } catch (...) {
      abort();
      throw;
    }
  }
  ~Nccl() {
    if (comm_ == nullptr) return;
    try {
      finish(ncclCommFinalize(comm_), "NCCL end");
      ncclCommDestroy(std::exchange(comm_, nullptr));
    } catch (const Error&) {
      abort();
    }
  }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  Communicator& communicator() const { return communicator_; }
  ncclComm_t handle() const {
    if (comm_ == nullptr) throw Error("P03", "", "NCCL was aborted");
    return comm_;
  }

  /// Until the library is through with a call that gave `code`.
  void finish(ncclResult_t code, std::string_view operation) {
    const auto start = std::chrono::steady_clock::now();
    while (code == ncclInProgress) {
      communicator_.check();
      look_again(start, operation);
      if (const ncclResult_t asked = ncclCommGetAsyncError(handle(), &code); asked != ncclSuccess) code = asked;
    }
    if (code != ncclSuccess) fail(code, operation);
  }

  void wait(cudaStream_t stream, std::string_view operation) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t looks = 1;; ++looks) {
      const cudaError_t state = cudaStreamQuery(stream);
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) check_cuda(state, "cudaStreamQuery");
      if (looks % 64 != 0) continue;
      ncclResult_t code = ncclSuccess;
      ncclCommGetAsyncError(handle(), &code);
      if (code != ncclSuccess && code != ncclInProgress) fail(code, operation);
      communicator_.check();
      look_again(start, operation);
    }
  }

  void abort() noexcept {
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

 private:
  void look_again(std::chrono::steady_clock::time_point start, std::string_view operation) {
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (waited > limit_) {
      char limit[32];
      std::snprintf(limit, sizeof(limit), "%g s", limit_);
      throw Error("P03", "", "rank " + std::to_string(communicator_.rank()) + " waited " + limit + " in '" + std::string(operation) +
                                 "' for the GPUs of other ranks; start the job again, or raise watchdog.limit_seconds if one was only slow");
    }
    if (waited > 0.001) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  [[noreturn]] void fail(ncclResult_t code, std::string_view operation) {
    const char* detail = ncclGetLastError(comm_);
    throw Error(operation == "NCCL start" ? "L41" : "P03", "",
                "NCCL in '" + std::string(operation) + "': " + ncclGetErrorString(code) + (detail != nullptr && *detail != '\0' ? std::string(": ") + detail : ""));
  }

  Communicator& communicator_;
  double limit_;
  ncclComm_t comm_ = nullptr;
};

class NcclReducer final : public Reducer {
 public:
  NcclReducer(std::shared_ptr<Nccl> nccl, DType dtype, int64_t elements, const Replicas& replicas, Reduction reduction, cudaStream_t stream)
      : nccl_(std::move(nccl)), dtype_(dtype), element_(size_of(dtype)), elements_(elements), replicas_(replicas), reduction_(reduction), stream_(stream) {
    check_tree_adds(dtype);
    rank_ = nccl_->communicator().rank();
    ranks_ = nccl_->communicator().size();
    if (replicas.ranks != ranks_ || replicas.count < ranks_) throw Error("X01", "", "replicas don't fit the ranks");
    const int64_t blocks = (elements + slice_block - 1) / slice_block;
    share_ = (blocks + ranks_ - 1) / ranks_ * slice_block;
    // Whole shares, as the library's own reduce-scatter wants them; the rest stays zero.
    stride_ = bytes_of(share_) * static_cast<size_t>(ranks_);
    const Range hosted = replicas.of_rank(rank_);
    contributions_ = DeviceMemory(static_cast<size_t>(hosted.size()) * stride_);
    sums_ = DeviceMemory(bytes_of(share_));
    reduction == Reduction::exact ? plan_exact() : plan_fast();
  }

  std::span<std::byte> contribution(int local_replica) override { return {contributions_.data() + static_cast<size_t>(local_replica) * stride_, bytes_of(elements_)}; }
  Range slice(int rank) const override { return {std::min(elements_, share_ * rank), std::min(elements_, share_ * (rank + 1))}; }
  /// The stream orders the writes of a step after the reads of the one before.
  void begin() override {}

  void reduce_scatter(const Take& take) override {
    const Range own = slice(rank_);
    const std::byte* sums = reduction_ == Reduction::exact ? reduce_exact() : reduce_fast();
    if (own.size() > 0) take(own.begin, {sums, bytes_of(own.size())});
  }

  void all_gather(std::span<std::byte> full) override {
    if (full.size() != bytes_of(elements_)) throw Error("X01", "", "the bytes to gather are not as many as were reduced");
    if (ranks_ == 1) return;
    if (share_ * ranks_ == elements_ || full.data() == full_.data()) {
      const std::byte* own = full.data() + bytes_of(share_ * rank_);
      nccl_->finish(ncclAllGather(own, full.data(), static_cast<size_t>(share_), nccl_type(dtype_), nccl_->handle(), stream_), "weights");
      return;
    }
    start_group("weights");
    for (int owner = 0; owner < ranks_; ++owner) {
      const Range theirs = slice(owner);
      if (theirs.size() == 0) continue;
      std::byte* place = full.data() + bytes_of(theirs.begin);
      add_to_group(ncclBroadcast(place, place, static_cast<size_t>(theirs.size()), nccl_type(dtype_), owner, nccl_->handle(), stream_), "weights");
    }
    end_group("weights");
  }

  /// Of whole shares, so that the library's own all-gather can be used.
  std::span<std::byte> full() override {
    if (full_.data() == nullptr) full_ = DeviceMemory(stride_);
    return {full_.data(), bytes_of(elements_)};
  }

 private:
  size_t bytes_of(int64_t count) const { return static_cast<size_t>(count) * element_; }

  static std::vector<Range> leaves_of(Range node) {
    std::vector<Range> leaves;
    for (int64_t i = node.begin; i < node.end; ++i) leaves.push_back({i, i + 1});
    return leaves;
  }

  /// The sum over consecutive replicas that this rank hosts.
  DeviceSum local_sum(Range subtree) const {
    std::vector<const std::byte*> inputs;
    for (int64_t k = subtree.begin; k < subtree.end; ++k) inputs.push_back(contributions_.data() + static_cast<size_t>(k - replicas_.of_rank(rank_).begin) * stride_);
    return DeviceSum(dtype_, subtree, leaves_of(subtree), inputs);
  }

  void plan_exact() {
    for (const Range& subtree : subtrees_inside(replicas_.count, replicas_.of_rank(rank_))) {
      if (subtree.size() == 1) {
        sent_.push_back(contributions_.data() + static_cast<size_t>(subtree.begin - replicas_.of_rank(rank_).begin) * stride_);
      } else {
        partial_sums_.push_back(local_sum(subtree));
        partial_memory_.emplace_back(stride_);
        sent_.push_back(partial_memory_.back().data());
        partial_places_.push_back(partial_memory_.back().data());
      }
    }
    std::vector<Range> nodes;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const Range& subtree : subtrees_inside(replicas_.count, replicas_.of_rank(rank))) {
        nodes.push_back(subtree);
        senders_.push_back(rank);
      }
    }
    received_ = DeviceMemory(nodes.size() * bytes_of(share_));
    std::vector<const std::byte*> inputs;
    size_t mine = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      // Its own sums are read where they are.
      inputs.push_back(senders_[i] == rank_ ? sent_[mine++] + bytes_of(slice(rank_).begin) : received_.data() + i * bytes_of(share_));
    }
    single_input_ = nodes.size() == 1 ? inputs.front() : nullptr;
    total_.emplace_back(dtype_, Range{0, replicas_.count}, nodes, inputs);
  }

  const std::byte* reduce_exact() {
    for (size_t i = 0; i < partial_sums_.size(); ++i) partial_sums_[i].start(elements_, partial_places_[i], stream_);
    if (ranks_ > 1) {
      start_group("gradients");
      for (int rank = 0; rank < ranks_; ++rank) {
        const Range theirs = slice(rank);
        if (rank == rank_ || theirs.size() == 0) continue;
        for (const std::byte* values : sent_) {
          add_to_group(ncclSend(values + bytes_of(theirs.begin), static_cast<size_t>(theirs.size()), nccl_type(dtype_), rank, nccl_->handle(), stream_), "gradients");
        }
      }
      const Range own = slice(rank_);
      for (size_t i = 0; i < senders_.size() && own.size() > 0; ++i) {
        if (senders_[i] == rank_) continue;
        add_to_group(ncclRecv(received_.data() + i * bytes_of(share_), static_cast<size_t>(own.size()), nccl_type(dtype_), senders_[i], nccl_->handle(), stream_), "gradients");
      }
      end_group("gradients");
    }
    if (single_input_ != nullptr) return single_input_;
    total_.front().start(slice(rank_).size(), sums_.data(), stream_);
    return sums_.data();
  }

  void plan_fast() {
    const Range hosted = replicas_.of_rank(rank_);
    if (hosted.size() == 1) return;
    // Any order will do here; this one is a tree over the rank's own replicas.
    const Range local{0, hosted.size()};
    std::vector<const std::byte*> inputs;
    for (int64_t k = 0; k < hosted.size(); ++k) inputs.push_back(contributions_.data() + static_cast<size_t>(k) * stride_);
    partial_sums_.emplace_back(dtype_, local, leaves_of(local), inputs);
    partial_memory_.emplace_back(stride_);
    partial_places_.push_back(partial_memory_.back().data());
  }

  const std::byte* reduce_fast() {
    const std::byte* local = contributions_.data();
    if (!partial_sums_.empty()) {
      partial_sums_.front().start(elements_, partial_places_.front(), stream_);
      local = partial_places_.front();
    }
    nccl_->finish(ncclReduceScatter(local, sums_.data(), static_cast<size_t>(share_), nccl_type(dtype_), ncclSum, nccl_->handle(), stream_), "gradients");
    return sums_.data();
  }

  void start_group(const char* operation) { add_to_group(ncclGroupStart(), operation); }
  void add_to_group(ncclResult_t code, const char* operation) {
    if (code == ncclSuccess || code == ncclInProgress) return;
    ncclGroupEnd();
    nccl_->finish(code, operation);
  }
  void end_group(const char* operation) { nccl_->finish(ncclGroupEnd(), operation); }

  std::shared_ptr<Nccl> nccl_;
  DType dtype_;
  size_t element_;
  int64_t elements_;
  Replicas replicas_;
  Reduction reduction_;
  cudaStream_t stream_;
  int rank_ = 0;
  int ranks_ = 1;
  int64_t share_ = 0;
  size_t stride_ = 0;
  DeviceMemory contributions_;
  DeviceMemory sums_;
  DeviceMemory full_;  // made when first asked for
  DeviceMemory received_;
  std::vector<DeviceSum> partial_sums_;
  std::vector<DeviceMemory> partial_memory_;
  std::vector<std::byte*> partial_places_;
  std::vector<const std::byte*> sent_;
  std::vector<int> senders_;  // of each subtree of the whole sum
  std::vector<DeviceSum> total_;
  const std::byte* single_input_ = nullptr;
};

class NcclCommunicator final : public DeviceCommunicator {
 public:
  explicit NcclCommunicator(std::shared_ptr<Nccl> nccl) : nccl_(std::move(nccl)) {}

  std::unique_ptr<Reducer> make_reducer(DType dtype, int64_t elements, const Replicas& replicas, Reduction reduction, void* stream) override {
    return std::make_unique<NcclReducer>(nccl_, dtype, elements, replicas, reduction, static_cast<cudaStream_t>(stream));
  }
  void wait(void* stream, std::string_view operation) override { nccl_->wait(static_cast<cudaStream_t>(stream), operation); }
  void abort() noexcept override { nccl_->abort(); }

 private:
  std::shared_ptr<Nccl> nccl_;
};

}  // namespace

std::unique_ptr<DeviceCommunicator> join_devices(Communicator& communicator, int device, double limit_seconds) {
  return std::make_unique<NcclCommunicator>(std::make_shared<Nccl>(communicator, device, limit_seconds));
}

}  // namespace lockstep
