#include "io/json/json.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace lockstep {
namespace {

Problem problem_of(const std::string& text) {
  try {
    read_json_text("config.json", text, "Z13");
  } catch (const Error& error) {
    return error.problems().front();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 80);
  return {};
}

TEST(Json, ReadsEveryKindWithItsPlace) {
  const Value value = read_json_text("config.json", "{\"a\": [1, -2.5, true, null],\n \"b\\u00e9\": {\"c\": \"x\\\"]\"}, \"d\": 3.0}", "Z13");
  EXPECT_EQ(value.at("a").as_list()[0], Value(1));
  EXPECT_EQ(value.at("a").as_list()[1], Value(-2.5));
  EXPECT_EQ(value.at("a").as_list()[2], Value(true));
  EXPECT_TRUE(value.at("a").as_list()[3].is_null());
  EXPECT_EQ(value.at("a").as_list()[3].place().text(), "config.json:1:23");
  EXPECT_EQ(value.at("b\u00e9").key_place().text(), "config.json:2:2");
  EXPECT_EQ(value.at("b\u00e9").at("c").place().text(), "config.json:2:19");
  EXPECT_EQ(value.at("b\u00e9").at("c").as_string(), "x\"]");
  EXPECT_EQ(value.at("d").kind(), Value::Kind::real);
  EXPECT_EQ(value.at("d").place().text(), "config.json:2:33");
}

TEST(Json, IntegersBeyond64BitsBecomeReals) {
  const Value value = read_json_text("x", "[9223372036854775807, 9223372036854775808, -9223372036854775809, 1e300]", "Z13");
  EXPECT_EQ(value.as_list()[0], Value(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(value.as_list()[1], Value(9223372036854775808.0));
  EXPECT_EQ(value.as_list()[2], Value(-9223372036854775808.0));
  EXPECT_EQ(value.as_list()[3], Value(1e300));
}

TEST(Json, RefusesWhatIsNoStrictJsonAndSaysWhere) {
  const struct {
    std::string text;
    std::string place;
    std::string fragment;
  } rows[] = {
      {"{\"a\": 1 \"b\": 2}", "config.json:1:9", "JSON error at byte"},
      {"{\"a\": NaN}", "config.json:1:7", "JSON error at byte"},
      {"[Infinity]", "config.json:1:2", "JSON error at byte"},
      {"[1e999]", "config.json:1:", "overflow"},
      {"{\"a\": 1} x", "config.json:1:10", "JSON error at byte 9"},
      {"[1, 2", "config.json:1:6", "unexpected end of input"},
      {"", "config.json:1:1", "unexpected end of input"},
      {"[1,]", "config.json:1:4", "JSON error at byte 3"},
      {"{\"a\": 1,\n \"a\": 2}", "config.json:2:2", "'a' is set twice"},
      {"[\"\xff\"]", "config.json:1:", "UTF-8"},
      {"\xef\xbb\xbf{}", "config.json:1:1", "byte order mark"},
      {std::string(129, '[') + std::string(129, ']'), "config.json:1:129", "nested deeper than 128 levels"},
  };
  for (const auto& row : rows) {
    const Problem problem = problem_of(row.text);
    EXPECT_EQ(problem.code, "Z13") << row.text;
    EXPECT_EQ(problem.place.substr(0, row.place.size()), row.place) << problem.text();
    EXPECT_NE(problem.message.find(row.fragment), std::string::npos) << problem.text();
  }
}

TEST(Json, Takes128Levels) {
  const Value value = read_json_text("x", std::string(128, '[') + std::string(128, ']'), "Z13");
  EXPECT_TRUE(value.is_list());
}

TEST(Json, WritesAsPythonDoes) {
  // Python 3.11: json.dumps({"a": [1, 2.0, 1e-05, 1e+22, 0.1], "é😀\n\x7f": {}, "b": [], "c": None, "d": True})
  const Value value(Value::Map{
      {"a", Value(Value::List{Value(1), Value(2.0), Value(1e-5), Value(1e22), Value(0.1)})},
      {"\u00e9\U0001F600\n\x7f", Value::map()},
      {"b", Value::list()},
      {"c", Value()},
      {"d", Value(true)},
  });
  EXPECT_EQ(write_json(value), R"({"a": [1, 2.0, 1e-05, 1e+22, 0.1], "\u00e9\ud83d\ude00\n\u007f": {}, "b": [], "c": null, "d": true})");
  // json.dumps({"a": [1], "b": {}}, indent=2)
  EXPECT_EQ(write_json(Value(Value::Map{{"a", Value(Value::List{Value(1)})}, {"b", Value::map()}}), 2), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(write_json(Value(std::nan(""))), "NaN");
  EXPECT_EQ(write_json(Value(-std::numeric_limits<double>::infinity())), "-Infinity");
  EXPECT_EQ(write_json(Value("a\xff\xe2\x82z")), "\"a\\ufffd\\ufffd\\ufffdz\"");
}

TEST(Json, RoundTripsEveryKindAndRealExactly) {
  Value list = Value::list();
  for (const double number : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 3.0, 1e16, 123456789012345680.0, 2.2250738585072014e-308}) list.push_back(number);
  for (const int64_t number : {std::numeric_limits<int64_t>::min(), int64_t{0}, std::numeric_limits<int64_t>::max()}) list.push_back(number);
  list.push_back("quote \" slash \\ tab \t nul \x01 \u20ac");
  const Value read = read_json_text("x", write_json(list), "X");
  EXPECT_EQ(read, list);
  EXPECT_TRUE(std::signbit(read.as_list()[4].as_number()));
  EXPECT_EQ(read_json_text("x", write_json(list, 2), "X"), list);
}

}  // namespace
}  // namespace lockstep
