#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/communicator/communicator.h"
#include "core/communicator/group_communicator.h"
#include "core/communicator/mpi_links.h"

namespace lockstep {

namespace {

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

/// Open MPI looks for every network before it starts; on one node none is needed. Its own variables win.
void spare_the_networks() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  const char* local_size = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (size == nullptr || local_size == nullptr || std::strcmp(size, local_size) != 0) return;
  if (is_set("OMPI_MCA_pml") || is_set("OMPI_MCA_btl")) return;
  setenv("OMPI_MCA_pml", "ob1", 1);
  setenv("OMPI_MCA_btl", "self,vader", 1);
}

/// A launcher that is killed can't kill its ranks: the kernel does.
void die_with_launcher() {
  const pid_t launcher = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(static_cast<int>(ExitCode::peer));
}

/// What each rank says of itself, so that all find out who is on which node.
struct Whereabouts {
  int32_t node = 0;  // the lowest rank of those with whom it shares memory
  char host[252] = {};
};

/// Whether all ranks of `node` can open what its first rank shares: containers may keep them apart.
bool shares_memory(MPI_Comm node) {
  struct Offer {
    SegmentKey key;
    uint64_t token = 0;
  } offer;
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  if (size == 1) return true;
  MpiLinks links;
  std::shared_ptr<Segment> segment;
  int shared = 1;
  if (rank == 0) {
    try {
      segment = links.create_segment(sizeof(uint64_t), offer.key);
      std::random_device random;
      offer.token = (uint64_t{random()} << 32) | random() | 1;
      std::memcpy(segment->bytes().data(), &offer.token, sizeof(offer.token));
    } catch (const Error&) {
      offer.token = 0;  // no segment has this
    }
  }
  check_mpi(MPI_Bcast(&offer, sizeof(offer), MPI_BYTE, 0, node), "MPI_Bcast");
  if (rank != 0 && offer.token != 0) {
    try {
      uint64_t token = 0;
      std::memcpy(&token, links.open_segment(sizeof(token), offer.key)->bytes().data(), sizeof(token));
      if (token != offer.token) shared = 0;
    } catch (const Error&) {
      shared = 0;
    }
  }
  if (offer.token == 0) shared = 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &shared, 1, MPI_INT, MPI_MIN, node), "MPI_Allreduce");
  if (segment) links.close_segment(offer.key);
  return shared != 0;
}

Placement find_placement(int nodes) {
  Placement placement;
  int size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &placement.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");

  Whereabouts mine;
  gethostname(mine.host, sizeof(mine.host) - 1);
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, placement.rank, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  mine.node = placement.rank;
  if (shares_memory(node)) check_mpi(MPI_Bcast(&mine.node, 1, MPI_INT32_T, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  std::vector<Whereabouts> all(static_cast<size_t>(size));
  check_mpi(MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");

  const int parts = std::clamp(nodes, 1, size);
  std::map<std::pair<int, int>, int> numbers;
  for (int rank = 0; rank < size; ++rank) {
    const Whereabouts& theirs = all[static_cast<size_t>(rank)];
    const int part = static_cast<int>(int64_t{rank} * parts / size);
    const int number = numbers.try_emplace({theirs.node, part}, static_cast<int>(numbers.size())).first->second;
    if (number == placement.node_count()) placement.nodes.emplace_back();
    placement.nodes[static_cast<size_t>(number)].push_back(rank);
    placement.node_of.push_back(number);
    placement.hosts.push_back(parts == 1 ? theirs.host : fmt::format("{}.{}", theirs.host, part));
  }
  return placement;
}

}  // namespace

bool started_by_launcher() {
  // SLURM_* alone says that there is an allocation, not that this process is one of a job's ranks.
  return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || is_set("PMI_RANK") || is_set("PMI_SIZE");
}

MpiSession::MpiSession() {
  int before = 0;
  MPI_Initialized(&before);
  if (before != 0) throw Error("L43", "", "MPI was started before in this process; there can be one session");
  spare_the_networks();
  die_with_launcher();
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    throw Error("L43", "", "MPI_Init failed; does mpirun come from the MPI that this program was built with?");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

int MpiSession::size() const {
  int size = 1;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

std::unique_ptr<Communicator> MpiSession::make_communicator(int nodes) {
  return std::make_unique<GroupCommunicator>(std::make_shared<Group>(find_placement(nodes), std::make_unique<MpiLinks>()));
}

}  // namespace lockstep
