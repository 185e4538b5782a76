// The folders' edges go only downwards: launcher -> {layers, io} -> core. MPI, HDF5, YAML and CUDA stay where they belong.

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct Include {
  std::string file;  // from the root: "core/graph/graph.h"
  std::string path;  // as written between the quotes or brackets
};

std::vector<Include> includes_of(const std::string& folder) {
  const std::filesystem::path root = SOURCE_ROOT;
  const std::regex pattern(R"(^\s*#\s*include\s*["<]([^">]+)[">])");
  std::vector<Include> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) found.push_back({std::filesystem::relative(entry.path(), root).string(), match[1]});
    }
  }
  return found;
}

void expect_no_edge(const std::string& folder, const std::vector<std::string>& forbidden) {
  const std::vector<Include> includes = includes_of(folder);
  ASSERT_FALSE(includes.empty()) << folder << " has no code";
  for (const Include& include : includes) {
    for (const std::string& prefix : forbidden) EXPECT_NE(include.path.rfind(prefix, 0), 0u) << include.file << " includes " << include.path;
  }
}

TEST(Structure, EdgesGoOnlyDownwards) {
  expect_no_edge("core", {"layers/", "io/", "launcher/"});
  expect_no_edge("layers", {"io/", "launcher/"});
  expect_no_edge("io", {"layers/", "launcher/"});
}

TEST(Structure, LibrariesStayInTheirFolders) {
  for (const std::string folder : {"core", "layers", "io", "launcher"}) {
    for (const Include& include : includes_of(folder)) {
      if (include.path == "mpi.h") EXPECT_TRUE(include.file.rfind("core/communicator/", 0) == 0 || folder == "launcher") << include.file;
      if (include.path == "hdf5.h") EXPECT_EQ(folder, "io") << include.file;
      if (include.path.rfind("yaml-cpp/", 0) == 0) EXPECT_EQ(folder, "io") << include.file;
      if (include.path.rfind("cuda", 0) == 0 || include.path == "nccl.h") EXPECT_EQ(folder, "core") << include.file;
      if (include.path.rfind("spdlog/", 0) == 0) EXPECT_EQ(folder, "launcher") << include.file;
    }
  }
}

}  // namespace
