#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "io/model_file/stored_model.h"

namespace lockstep {
namespace {

const std::string models = std::string(TEST_DATA) + "/models/";

struct Refusal {
  const char* file;
  const char* code;
  std::vector<std::string> words;  ///< in the message; "a|b": one of them; case apart
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) { return out << refusal.file; }

// Made from files of real Keras and TensorFlow by damaging one thing each.
const std::vector<Refusal> refusals = {
    {"ckpt_big_endian/ckpt", "S08", {"endian"}},
    {"ckpt_data_bitflip/ckpt", "S15", {"CRC|crc|checksum", "layer_with_weights|kernel|bias|GRAPH"}},
    {"ckpt_data_empty/ckpt", "S11", {"ckpt.data-00000-of-00001"}},
    {"ckpt_data_truncated/ckpt", "S11", {"ckpt.data-00000-of-00001", "truncated|short|size|beyond|end"}},
    {"ckpt_dtype_unknown/ckpt", "S17", {"kernel", "dtype|type|77"}},
    {"ckpt_entry_not_proto/ckpt", "S09", {"kernel|layer_with_weights-0"}},
    {"ckpt_future_version/ckpt", "S08", {"version"}},
    {"ckpt_graph_bad_node/ckpt", "S19", {"object graph|node|_CHECKPOINTABLE_OBJECT_GRAPH", "4096|range"}},
    {"ckpt_graph_corrupt/ckpt", "S19", {"object graph|_CHECKPOINTABLE_OBJECT_GRAPH"}},
    {"ckpt_huge_shards/ckpt", "S02", {"shard"}},
    {"ckpt_index_bad_magic/ckpt", "S03", {"ckpt.index", "magic|table|footer"}},
    {"ckpt_index_block_crc/ckpt", "S04", {"ckpt.index", "CRC|crc|checksum|corrupt"}},
    {"ckpt_index_handle_beyond/ckpt", "S05", {"ckpt.index"}},
    {"ckpt_index_tiny/ckpt", "S03", {"ckpt.index"}},
    {"ckpt_index_truncated/ckpt", "S03", {"ckpt.index", "truncated|short|footer|magic"}},
    {"ckpt_missing_index/ckpt", "S02", {"ckpt.index"}},
    {"ckpt_missing_shard/ckpt", "S02", {"ckpt.data-00000-of-00001"}},
    {"ckpt_missing_tensor/ckpt", "S19", {"kernel|layer_with_weights-0"}},
    {"ckpt_negative_dim/ckpt", "S13", {"kernel", "shape|negative|dim"}},
    {"ckpt_negative_offset/ckpt", "S11", {"kernel", "offset|negative"}},
    {"ckpt_no_header/ckpt", "S08", {"header|ckpt.index"}},
    {"ckpt_offset_beyond/ckpt", "S11", {"kernel", "offset|beyond|end|size"}},
    {"ckpt_shape_overflow/ckpt", "S12", {"kernel", "shape|overflow|size"}},
    {"ckpt_shard_out_of_range/ckpt", "S10", {"kernel", "shard"}},
    {"ckpt_size_shape_disagree/ckpt", "S12", {"kernel", "size|shape"}},
    {"ckpt_zero_shards/ckpt", "S08", {"shard"}},
    {"h5_config_not_json/model.h5", "H27", {"model_config", "JSON"}},
    {"h5_config_trailing_garbage/model.h5", "H27", {"model_config", "JSON"}},
    {"h5_corrupt_gzip/model.h5", "H22", {"d1", "kernel"}},
    {"h5_duplicate_weight_name/model.h5", "H28", {"d1", "kernel|duplicate|bias"}},
    {"h5_empty_file/model.h5", "H02", {"model.h5", "empty|HDF5|not an HDF5"}},
    {"h5_external_link/model.h5", "H07", {"external", "d1"}},
    {"h5_external_link_absolute/model.h5", "H07", {"external", "d1"}},
    {"h5_external_storage/model.h5", "H09", {"external", "d1", "kernel"}},
    {"h5_fletcher_mismatch/model.h5", "H22", {"d1", "kernel"}},
    {"h5_hard_link_cycle/model.h5", "H25", {"d1", "kernel|cycle"}},
    {"h5_huge_dims/model.h5", "H11", {"d1", "kernel", "1099511627776|shape|size"}},
    {"h5_keras_version_future/model.h5", "H34", {"keras_version", "99.0.0"}},
    {"h5_keras_version_garbage/model.h5", "H34", {"keras_version", "banana"}},
    {"h5_layer_count_mismatch/model.h5", "H28", {"d2|2", "1|layer"}},
    {"h5_layer_names_missing/model.h5", "H28", {"layer_names"}},
    {"h5_missing_layer_group/model.h5", "H28", {"d2"}},
    {"h5_missing_weight/model.h5", "H28", {"d2", "bias"}},
    {"h5_soft_link_loop/model.h5", "H08", {"d1", "link|kernel"}},
    {"h5_truncated/model.h5", "H03", {"model.h5", "truncated|HDF5|corrupt"}},
    {"h5_virtual_dataset/model.h5", "H10", {"virtual|external", "d1", "kernel"}},
    {"h5_weight_is_compound/model.h5", "H14", {"d1", "kernel", "type|dtype|compound"}},
    {"h5_weight_is_group/model.h5", "H28", {"d1", "kernel"}},
    {"h5_weight_is_string/model.h5", "H14", {"d1", "kernel", "type|dtype|string"}},
    {"h5_wrong_magic/model.h5", "H01", {"model.h5", "HDF5|signature"}},
    {"keras_absolute_entry/model.keras", "Z04", {"/tmp/evil.txt"}},
    {"keras_bad_zip_crc/model.keras", "Z08", {"config.json", "CRC|crc|checksum"}},
    {"keras_config_not_json/model.keras", "Z13", {"config.json", "JSON"}},
    {"keras_duplicate_entries/model.keras", "Z03", {"config.json", "duplicate|twice"}},
    {"keras_metadata_version_future/model.keras", "Z16", {"keras_version", "99"}},
    {"keras_missing_config/model.keras", "Z02", {"config.json"}},
    {"keras_missing_weights/model.keras", "Z02", {"model.weights.h5"}},
    {"keras_not_a_zip/model.keras", "Z01", {"model.keras", "zip"}},
    {"keras_path_traversal/model.keras", "Z04", {"..", "evil.txt"}},
    {"keras_truncated_zip/model.keras", "Z01", {"model.keras", "zip|central directory|truncated"}},
    {"keras_weights_external_link/model.keras", "H07", {"external", "d1|dense"}},
    {"keras_weights_huge_dims/model.keras", "H11", {"d1|dense", "shape|size"}},
};

std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

bool mentions(const std::string& text, const std::string& alternatives) {
  for (size_t begin = 0; begin <= alternatives.size();) {
    const size_t end = std::min(alternatives.find('|', begin), alternatives.size());
    if (lower(text).find(lower(alternatives.substr(begin, end - begin))) != std::string::npos) return true;
    begin = end + 1;
  }
  return false;
}

// Opens a file and reads all its values, as a restore does.
void read_all(const std::string& path) {
  const StoredModel model = open_model_file(path);
  std::vector<StoredTensor> tensors = model.tensors;
  if (model.optimizer) {
    for (const auto& slot : model.optimizer->slots) tensors.push_back(slot.tensor);
  }
  for (const StoredTensor& tensor : tensors) {
    std::vector<std::byte> values(tensor.type.bytes());
    model.read(tensor, values);
  }
}

// The one problem of a file, or an empty one when it is read.
Problem problem_of(const std::string& path) {
  try {
    read_all(path);
  } catch (const Error& error) {
    return error.problems().front();
  }
  return {};
}

class RefusedModelFiles : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedModelFiles, NameTheFileAndWhatIsWrong) {
  const Problem problem = problem_of(models + "refused/" + GetParam().file);
  EXPECT_EQ(problem.code, GetParam().code) << problem.text();
  const std::string folder = std::string(GetParam().file).substr(0, std::string(GetParam().file).find('/'));
  EXPECT_NE(problem.place.find(folder), std::string::npos) << problem.text();
  for (const std::string& word : GetParam().words) EXPECT_TRUE(mentions(problem.text(), word)) << "'" << word << "' is not in: " << problem.text();
}

INSTANTIATE_TEST_SUITE_P(Damaged, RefusedModelFiles, testing::ValuesIn(refusals), [](const auto& info) {
  const std::string file = info.param.file;
  return file.substr(0, file.find('/'));
});

class DamagedCopy : public testing::Test {
 protected:
  DamagedCopy() { std::filesystem::create_directories(folder_); }
  ~DamagedCopy() override { std::filesystem::remove_all(folder_); }

  std::string copy(const std::string& name) const {
    std::filesystem::copy(models + name, folder_ / name, std::filesystem::copy_options::recursive);
    return (folder_ / name).string();
  }
  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("lockstep_damaged_" + std::to_string(getpid()));
};

TEST_F(DamagedCopy, SavedModelLacksAPart) {
  for (const auto& [part, code] : std::vector<std::pair<std::string, std::string>>{
           {"saved_model.pb", "S01"}, {"variables/variables.index", "S02"}, {"variables/variables.data-00000-of-00001", "S02"}}) {
    const std::string path = copy("demo_saved_model");
    std::filesystem::remove(path + "/" + part);
    const Problem problem = problem_of(path);
    EXPECT_EQ(problem.code, code) << problem.text();
    EXPECT_TRUE(mentions(problem.text(), part.substr(part.rfind('/') + 1))) << problem.text();
    std::filesystem::remove_all(path);
  }
}

TEST_F(DamagedCopy, SavedModelIsCutOff) {
  for (const char* part : {"saved_model.pb", "keras_metadata.pb"}) {
    const std::string path = copy("demo_saved_model");
    const std::string whole = contents(path + "/" + part);
    write(path + "/" + part, whole.substr(0, whole.size() / 2));
    const Problem problem = problem_of(path);
    EXPECT_EQ(problem.code, "S20") << problem.text();
    EXPECT_TRUE(mentions(problem.place, part)) << problem.text();
    std::filesystem::remove_all(path);
  }
}

TEST_F(DamagedCopy, EveryBitOfACheckpointIsChecked) {
  const std::string path = copy("named_tf");
  for (const char* part : {"model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001"}) {
    const std::string file = path + "/" + part;
    const std::string whole = contents(file);
    ASSERT_FALSE(whole.empty());
    for (size_t byte = 0; byte < whole.size(); ++byte) {
      std::string damaged = whole;
      damaged[byte] = static_cast<char>(damaged[byte] ^ 4);
      write(file, damaged);
      // No checksum covers the index's footer; nothing reads TensorFlow 1's beta1_power and beta2_power, the first 8 bytes of data.
      const bool is_index = std::string(part) == "model.ckpt-7.index";
      const bool is_free = is_index ? byte + 48 >= whole.size() : byte < 8;
      const Problem problem = problem_of(path + "/model.ckpt-7");
      EXPECT_TRUE(is_free || !problem.code.empty()) << part << " byte " << byte;
    }
    write(file, whole);
  }
  EXPECT_EQ(problem_of(path + "/model.ckpt-7").text(), Problem{}.text());
}

TEST_F(DamagedCopy, EveryBitOfAnArchiveIsChecked) {
  const std::string path = copy("embedding_dot_k3.keras");
  const std::string whole = contents(path);
  const size_t weights = whole.find("model.weights.h5");
  ASSERT_NE(weights, std::string::npos);
  for (size_t byte = 30; byte < whole.size(); byte += 37) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    write(path, damaged);
    const std::string code = problem_of(path).code;
    EXPECT_TRUE(code.empty() || code.front() == 'Z') << "byte " << byte << ": " << code;
    // Between the headers every bit is under a CRC-32.
    const bool is_checked = byte < weights - 64 || (byte > weights + 64 && byte + 512 < whole.size());
    EXPECT_TRUE(!is_checked || !code.empty()) << "byte " << byte;
  }
}

TEST(ModelFile, ThatIsMissingIsNamed) {
  const Problem problem = problem_of(models + "nothing_here");
  EXPECT_EQ(problem.code, "H01");
  EXPECT_TRUE(mentions(problem.text(), "nothing_here")) << problem.text();
}

TEST(ModelFile, ThatIsAPipeIsNotWaitedFor) {
  const std::string path = (std::filesystem::temp_directory_path() / ("lockstep_pipe_" + std::to_string(getpid()))).string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(mentions(problem_of(path).text(), "not a regular file"));
  std::filesystem::remove(path);
}

TEST(ModelFile, AFolderOfNothingSaysWhatWasExpected) {
  const Problem problem = problem_of(models + "refused");
  EXPECT_EQ(problem.code, "S01");
  EXPECT_TRUE(mentions(problem.text(), "saved_model.pb")) << problem.text();
}

}  // namespace
}  // namespace lockstep
