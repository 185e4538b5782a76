#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::tensorflow {

/// Every entry of a LevelDB table, which is what a TensorBundle's `.index` is. Read by hand rather than with LevelDB, which allocates what a block's
/// handle says before it looks at the file.
///
///   block     entries {varint shared, varint not shared, varint length of value, rest of key, value}, restart offsets (u32), their count (u32)
///   trailer   after each block: 1 byte compression (0: none), masked CRC-32C over block and that byte (u32)
///   index     a block of {last key, varint offset, varint size}, an entry a data block
///   footer    48 bytes: handle of the metaindex block, handle of the index block, zeros, magic 0xdb4775248b80fb57 (u64)
/// All little-endian. Source: LevelDB, doc/table_format.md.
///
/// `place` is the file's name for errors. Throws Error S03 to S09.
std::map<std::string, std::string> read_table(const std::string& place, std::string_view bytes);

/// Takes a varint off the front of `bytes`; nothing when it is overlong, overflows or is cut off.
std::optional<uint64_t> take_varint(std::string_view& bytes);

}  // namespace lockstep::tensorflow
