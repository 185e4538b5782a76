#include "io/zip/writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

std::string hexadecimal(const std::vector<std::byte>& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[static_cast<size_t>(byte) >> 4];
    text += digits[static_cast<size_t>(byte) & 15];
  }
  return text;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// Made by Python 3.11's zipfile: two ZipInfo of 1980-01-01 with mode 0100644, ZIP_STORED.
TEST(ZipWriter, WritesTheBytesThatPythonsZipfileWrites) {
  ZipWriter zip;
  EXPECT_EQ(zip.add("a.txt", bytes_of("hello\n")), 35u);
  EXPECT_EQ(zip.add("d\u00e9/b", {}), 76u);
  EXPECT_EQ(hexadecimal(zip.finish()),
            "504b03041400000000000000210020303a36060000000600000005000000612e74787468656c6c6f0a504b0304140000080000000021000000000000000000000000000500000064"
            "c3a92f62504b010214031400000000000000210020303a360600000006000000050000000000000000000000a48100000000612e747874504b0102140314000008000000002100000000"
            "000000000000000000050000000000000000000000a4812900000064c3a92f62504b05060000000002000200660000004c0000000000");
}

// APPNOTE 4.5.3: sizes in the local extra field are original, then compressed; the 32-bit fields hold 0xffffffff; version 4.5.
TEST(ZipWriter, GivesAnEntryOf5GiBA64BitSizeInItsLocalHeader) {
  std::vector<std::byte> header;
  zip::append_local_header(header, {"w", 0x01020304, 0x140000000, 0});
  EXPECT_EQ(hexadecimal(header),
            "504b0304"
            "2d00"
            "0000"
            "0000"
            "0000"
            "2100"
            "04030201"
            "ffffffff"
            "ffffffff"
            "0100"
            "1400"
            "77"
            "0100"
            "1000"
            "0000004001000000"
            "0000004001000000");
}

TEST(ZipWriter, GivesASmallEntryBehind4GiBOnlyA64BitOffset) {
  std::vector<std::byte> line;
  zip::append_directory_header(line, {"w", 0, 7, 0x140000000});
  EXPECT_EQ(hexadecimal(line),
            "504b0102"
            "2d03"
            "2d00"
            "0000"
            "0000"
            "0000"
            "2100"
            "00000000"
            "07000000"
            "07000000"
            "0100"
            "0c00"
            "0000"
            "0000"
            "0000"
            "0000a481"
            "ffffffff"
            "77"
            "0100"
            "0800"
            "0000004001000000");
}

TEST(ZipWriter, EndsWithTheZip64RecordsOnlyWhereNumbersNeedThem) {
  std::vector<std::byte> small;
  zip::append_end(small, 65534, 10, 20);
  EXPECT_EQ(hexadecimal(small),
            "504b0506"
            "0000"
            "0000"
            "feff"
            "feff"
            "0a000000"
            "14000000"
            "0000");

  std::vector<std::byte> large;
  zip::append_end(large, 65535, 10, 20);
  EXPECT_EQ(hexadecimal(large),
            "504b0606"
            "2c00000000000000"
            "2d03"
            "2d00"
            "00000000"
            "00000000"
            "ffff000000000000"
            "ffff000000000000"
            "0a00000000000000"
            "1400000000000000"
            "504b0607"
            "00000000"
            "1e00000000000000"
            "01000000"
            "504b0506"
            "0000"
            "0000"
            "ffff"
            "ffff"
            "0a000000"
            "14000000"
            "0000");
}

}  // namespace
}  // namespace lockstep
