#include "core/communicator/problems.h"

#include <charconv>
#include <new>

namespace lockstep {

namespace {

/// A cut text ends with this.
constexpr std::string_view cut_mark = " [...]";

void append(std::string& bytes, std::string_view text) {
  bytes += std::to_string(text.size());
  bytes += ':';
  bytes += text;
}

/// The text, or as much of it as `limit` bytes hold.
std::string shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  if (limit < cut_mark.size()) return {};
  return text.substr(0, limit - cut_mark.size()) + std::string(cut_mark);
}

bool take(std::string_view& bytes, std::string& text) {
  size_t size = 0;
  const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), size);
  if (error != std::errc() || end == bytes.data() + bytes.size() || *end != ':') return false;
  bytes.remove_prefix(static_cast<size_t>(end - bytes.data()) + 1);
  if (bytes.size() < size) return false;
  text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

}  // namespace

std::string pack(const std::vector<Problem>& problems, size_t limit) {
  // Room for the four lengths of a problem.
  constexpr size_t lengths = 4 * 21;
  std::string bytes;
  for (const Problem& problem : problems) {
    const size_t used = bytes.size() + lengths + problem.code.size();
    if (used >= limit) break;
    const size_t room = limit - used;
    const std::string message = shortened(problem.message, room);
    const std::string place = shortened(problem.place, room - message.size());
    const std::string excerpt = shortened(problem.excerpt, room - message.size() - place.size());
    append(bytes, problem.code);
    append(bytes, place);
    append(bytes, message);
    append(bytes, excerpt);
  }
  return bytes;
}

std::vector<Problem> unpack(std::string_view bytes) {
  std::vector<Problem> problems;
  while (!bytes.empty()) {
    Problem problem;
    if (!take(bytes, problem.code) || !take(bytes, problem.place) || !take(bytes, problem.message) || !take(bytes, problem.excerpt)) {
      return {{"X01", "", "another rank failed, and its message can't be read here; see that rank's output", ""}};
    }
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> current_problems() {
  try {
    throw;
  } catch (const Error& error) {
    return error.problems();
  } catch (const std::bad_alloc&) {
    return {{"X02", "", "out of memory; fewer replicas a rank, a smaller global batch or more nodes need less", ""}};
  } catch (const std::exception& error) {
    return {{"X01", "", error.what(), ""}};
  } catch (...) {
    return {{"X01", "", "an exception of an unknown type", ""}};
  }
}

}  // namespace lockstep
