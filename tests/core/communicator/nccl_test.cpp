#include "core/communicator/nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lockstep;

TEST(JoinDevices, JoinsOrSaysWhatIsMissing) {
  const auto communicator = make_single_communicator();
  try {
    const auto devices = join_devices(*communicator, 0, 30);
    ASSERT_NE(devices, nullptr);
    EXPECT_THROW(devices->make_reducer(DType::boolean, 1, {1, 1}, Reduction::exact, nullptr), Error);
  } catch (const Error& error) {
    // L40: a build without NCCL; L41: a machine without a GPU.
    ASSERT_EQ(error.exit_code(), ExitCode::launch) << error.what();
    EXPECT_THAT(error.what(), testing::AnyOf(testing::HasSubstr("error[L40] this build has no NCCL"), testing::HasSubstr("error[L41]")));
  }
}
