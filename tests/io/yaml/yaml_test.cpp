#include "io/yaml/yaml.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <unistd.h>

namespace lockstep {
namespace {

Value read(const std::string& text) { return read_yaml_text("job.yaml", text); }

std::vector<Problem> problems_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.problems();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 80);
  return {{}};
}

TEST(Yaml, PlainScalarsFollowTheCoreSchema) {
  const struct {
    std::string text;
    Value value;
  } rows[] = {
      {"1e-4", Value(1e-4)},
      {".5", Value(0.5)},
      {"1E5", Value(1e5)},
      {"1.", Value(1.0)},
      {"3.0", Value(3.0)},
      {"-0.0", Value(-0.0)},
      {"+5", Value(5)},
      {"-12", Value(-12)},
      {"0", Value(0)},
      {"true", Value(true)},
      {"false", Value(false)},
      {"~", Value()},
      {"null", Value()},
      {"", Value()},
      {"y", Value("y")},
      {"1.2.3", Value("1.2.3")},
      {"1e", Value("1e")},
      {"-", Value("-")},
      {"12:30", Value("12:30")},
      {"2024-01-01", Value("2024-01-01")},
      {"'010'", Value("010")},
      {"\"yes\"", Value("yes")},
      {"\"\"", Value("")},
      {"file.h5:/data/x", Value("file.h5:/data/x")},
      {"a_b", Value("a_b")},
      {"x1_0", Value("x1_0")},
      {"9223372036854775807", Value(std::numeric_limits<int64_t>::max())},
      {"inf", Value("inf")},
      {"[1, .5, a]", Value(Value::List{Value(1), Value(0.5), Value("a")})},
      {"|\n  a\n  b\n", Value("a\nb\n")},
      {"'it''s'", Value("it's")},
      {"\"\\u20ac\\n\"", Value("\u20ac\n")},
  };
  for (const auto& row : rows) {
    const Value value = row.text == "-" ? read("- '-'").as_list()[0] : read("a: " + row.text).at("a");
    EXPECT_EQ(value, row.value) << row.text << " read as " << value.described();
  }
}

TEST(Yaml, KeysAreText) {
  const Value value = read("{0: a, 1.5: b, yes: c, \"my>Tower\": d}");
  EXPECT_EQ(value.as_map()[0].first, "0");
  EXPECT_EQ(value.as_map()[1].first, "1.5");
  EXPECT_EQ(value.as_map()[2].first, "yes");
  EXPECT_EQ(value.as_map()[3].first, "my>Tower");
}

TEST(Yaml, EveryValueAndKeyHasItsPlaceInCharacters) {
  const Value value = read("a: 1\n\u00e9\u00e9: [\u00fc, {b: \"x\"}]\nc:\n  - d: &m\n      e: ~\n  - *m\nf:\n");
  EXPECT_EQ(value.at("a").place().text(), "job.yaml:1:4");
  const Value& list = value.at("\u00e9\u00e9");
  EXPECT_EQ(list.key_place().text(), "job.yaml:2:1");
  EXPECT_EQ(list.place().text(), "job.yaml:2:5");
  EXPECT_EQ(list.as_list()[1].at("b").place().text(), "job.yaml:2:13");
  const Value& anchored = value.at("c").as_list()[0].at("d");
  EXPECT_EQ(anchored.place().text(), "job.yaml:5:7");
  EXPECT_EQ(anchored.at("e").place().text(), "job.yaml:5:10");
  EXPECT_EQ(value.at("c").as_list()[1].at("e").place().text(), "job.yaml:5:10");
  EXPECT_EQ(value.at("f").place().text(), "job.yaml:7:1");
  EXPECT_EQ(list.as_list()[1].at("b").place().excerpt(), "  \u00e9\u00e9: [\u00fc, {b: \"x\"}]\n              ^");
}

TEST(Yaml, RefusesBadInputWithCodePlaceAndWayOut) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) bomb += ", " + before;
    bomb += "]\n";
  }
  std::string chain = "a0: &a0 " + std::string(40, '[') + std::string(40, ']') + "\na1: " + std::string(30, '[') + "*a0" + std::string(30, ']') + "\n";
  const struct {
    std::string text;
    std::string code;
    std::string place;
    std::string fragment;
  } rows[] = {
      {"a:\n\tb: 1\n", "Y04", "job.yaml:2:1", "tab used for indentation; use spaces"},
      {"a:\n  b: 1\n  \tc: 2\n", "Y04", "job.yaml:3:3", "tab used"},
      {"a:\n\tb\n", "Y04", "job.yaml:2:1", "tab used"},
      {"a: [1, 2\nb: 3\n", "Y05", "job.yaml:1:4", "'[' opened at 1:4 is never closed"},
      {"a: [1, \"]\", {x: [3]\n", "Y05", "job.yaml:1:13", "'{' opened at 1:13 is never closed"},
      {"a: {x: 1, y: 2\nb: 3", "Y05", "job.yaml:1:4", "'{' opened at 1:4 is never closed"},
      {"a: [1, {x: 3]\n", "Y05", "job.yaml:1:13", "'{' opened at 1:8 is never closed; found ']'"},
      {std::string(100000, '['), "Y05", "job.yaml:1:100000", "is never closed"},
      {"]", "Y05", "job.yaml:1:1", "']' closes nothing"},
      {"a: 1\n\nb: - x\nc: \"abc\nd: 2\n", "Y00", "job.yaml:3:4", "not valid YAML"},
      {"a: 1\nb: 2\nc:   \"abc\nd: 2\n", "Y06", "job.yaml:3:6", "string opened at 3:6 is never closed"},
      {"a: 'it''s\n", "Y06", "job.yaml:1:4", "string opened at 1:4 is never closed"},
      {"a: [\"abc\n]\n", "Y06", "job.yaml:1:5", "string opened at 1:5 is never closed"},
      {"a: b\nc: [\"]\", \"abc", "Y06", "job.yaml:2:10", "string opened at 2:10 is never closed"},
      {"a: \"x\nb: \"y\"\n", "Y06", "job.yaml:1:4", "string opened at 1:4 ends only at 2:4"},
      {"lr:0.1", "Y07", "job.yaml:1:1", "missing space after ':' (found the text 'lr:0.1')"},
      {"train:\n  lr:0.1\n", "Y07", "job.yaml:2:3", "found the text 'lr:0.1'"},
      {"train:\n  epochs: 3\n  lr:0.1\n", "Y07", "job.yaml:3:3", "found the text 'lr:0.1'"},
      {"train:\n  lr:0.1\n  epochs: 3\n", "Y07", "job.yaml:2:3", "found the text 'lr:0.1'"},
      {"a: {lr:0.1, b: 2}", "Y07", "job.yaml:1:5", "found the text 'lr:0.1'"},
      {"a: 1\nb\n", "Y07", "job.yaml:2:1", "missing ':' after 'b'"},
      {"train:\n  epochs: 1\n  epochs: 2\n", "Y08", "job.yaml:3:3", "'epochs' is set twice (lines 2 and 3)"},
      {"a: {x: .nan}", "Y14", "job.yaml:1:8", "a.x: must be a finite number"},
      {"a: [1, -.inf]", "Y14", "job.yaml:1:8", "a[1]: must be a finite number"},
      {"a: 1e999", "Y14", "job.yaml:1:4", "a: must be a finite number"},
      {"a: 010", "Y15", "job.yaml:1:4", "write 10; a leading zero means octal (8) in YAML 1.1"},
      {"a: -0089", "Y15", "job.yaml:1:4", "write -89; a leading zero means octal in YAML 1.1"},
      {"a: 0x10", "Y15", "job.yaml:1:4", "write 16; hexadecimal"},
      {"a: 0o10", "Y15", "job.yaml:1:4", "write 8; octal"},
      {"a: yes", "Y16", "job.yaml:1:4", "write true or false"},
      {"a: off", "Y16", "job.yaml:1:4", "write true or false"},
      {"a: TRUE", "Y16", "job.yaml:1:4", "write true or false"},
      {"a: 1_000", "Y17", "job.yaml:1:4", "expected an integer; write 1000"},
      {"a: 9223372036854775808", "Y18", "job.yaml:1:4", "does not fit in 64 bits"},
      {"a: 1\n---\nb: 2\n", "Y20", "job.yaml:2:1", "only one document is allowed; a second starts at line 2"},
      {"- a\nb: 1\n", "Y00", "job.yaml:2:1", "indentation"},
      {std::string("\xff\xfe") + "a", "Y21", "job.yaml", "UTF-16"},
      {"a: b\nc: \xff\n", "Y21", "job.yaml:2", "invalid UTF-8 byte 0xff at byte 8"},
      {"a: \xed\xa0\x80\n", "Y21", "job.yaml:1", "invalid UTF-8 byte 0xed at byte 3"},
      {std::string("a: b\0c", 6), "Y21", "job.yaml:1", "NUL character at byte 4"},
      {"a: \x1b[31m", "Y21", "job.yaml:1", "control character 0x1b at byte 3"},
      {"a: \xc2\x9b", "Y21", "job.yaml:1", "control character 0x9b at byte 3"},
      {"a: " + std::string(64, '[') + std::string(64, ']'), "Y22", "job.yaml:1:67", "nested deeper than 64 levels"},
      {std::string(1000, '[') + std::string(1000, ']'), "Y22", "job.yaml:1:65", "nested deeper than 64 levels"},
      {chain, "Y22", "job.yaml:2:35", "nested deeper than 64 levels"},
      {bomb, "Y23", "job.yaml:5:", "aliases expand to more than 100,000 nodes"},
      {"a: &a [*a]", "Y24", "job.yaml:1:8", "anchor 'a' contains itself"},
      {"a: *base\n", "Y25", "job.yaml:1:4", "alias '*base' has no anchor '&base' before it"},
      {"a: !!python/object 5", "Y26", "job.yaml:1:4", "tags are not allowed: '!!python/object'"},
      {"a: &x !foo {b: 1}", "Y26", "job.yaml:1:7", "tags are not allowed: '!foo'"},
      {"a: ! 6", "Y26", "job.yaml:1:4", "tags are not allowed: '!'"},
      {"a: {<<: 3}", "Y27", "job.yaml:1:5", "'<<' takes a mapping"},
      {"? [a]\n: 3", "Y00", "job.yaml:1:3", "a key must be plain text"},
      {"a: [1, , 2]", "Y00", "job.yaml:1:8", "nothing stands before this comma"},
      {": x", "Y00", "job.yaml:1:1", "a key is missing"},
  };
  for (const auto& row : rows) {
    const Problem problem = problems_of(row.text).front();
    EXPECT_EQ(problem.code, row.code) << row.text.substr(0, 80) << "\n"
                                      << problem.text();
    EXPECT_EQ(problem.place.substr(0, row.place.size()), row.place) << problem.text();
    EXPECT_NE(problem.message.find(row.fragment), std::string::npos) << problem.text();
  }
}

TEST(Yaml, TellsEveryProblemAtOnceAndShowsTheLine) {
  const std::vector<Problem> problems = problems_of("a: yes\nb: 010\nb: 1\nc: !x 2\nd: *e\n");
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_EQ(problems[0].code + problems[1].code + problems[2].code + problems[3].code + problems[4].code, "Y16Y15Y08Y26Y25");
  EXPECT_EQ(problems[1].excerpt, "  b: 010\n     ^");
  std::string many;
  for (int i = 0; i < 30; ++i) many += "k" + std::to_string(i) + ": yes\n";
  EXPECT_EQ(problems_of(many).size(), 20U);
}

TEST(Yaml, MergesMappingsUnderTheirOwnKeys) {
  const Value value = read("base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nx: {<<: *base, b: 9}\ny:\n  <<: [*base, *more]\n  d: 5\nz: {\"<<\": 1}\n");
  EXPECT_EQ(value.at("x"), Value(Value::Map{{"b", Value(9)}, {"a", Value(1)}}));
  EXPECT_EQ(value.at("y"), Value(Value::Map{{"d", Value(5)}, {"a", Value(1)}, {"b", Value(2)}, {"c", Value(4)}}));
  EXPECT_EQ(value.at("y").at("c").place().text(), "job.yaml:2:23");
  EXPECT_EQ(value.at("z").at("<<"), Value(1));
}

TEST(Yaml, TakesAByteOrderMarkAndWindowsLineEnds) {
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a: 1\r\nb: x\r\n"),
            Value(Value::Map{{"a", Value(1)}, {"b", Value("x")}}));
}

class YamlFile : public testing::Test {
 protected:
  YamlFile() : folder_(std::filesystem::temp_directory_path() / ("lockstep_yaml_" + std::to_string(getpid()))) { std::filesystem::create_directories(folder_); }
  ~YamlFile() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  static Problem problem_of(const std::string& path) {
    try {
      read_yaml_file(path);
    } catch (const Error& error) {
      return error.problems().front();
    }
    ADD_FAILURE() << "accepted " << path;
    return {};
  }
  std::filesystem::path folder_;
};

TEST_F(YamlFile, SaysWhyAFileCannotBeAJob) {
  EXPECT_EQ(problem_of(folder_ / "none.yaml").text(), "error[Y01] cannot read job file '" + (folder_ / "none.yaml").string() + "': No such file or directory");
  EXPECT_EQ(problem_of(folder_).text(), "error[Y01] cannot read job file '" + folder_.string() + "': is a directory");
  const std::string empty = write("empty.yaml", "# nothing\n\n");
  EXPECT_EQ(problem_of(empty).text(), "error[Y02] " + empty + ": job file is empty; 'lockstep init' writes a working one");
  EXPECT_EQ(problem_of(write("list.yaml", "\n- a\n")).text(), "error[Y03] " + (folder_ / "list.yaml").string() + ":2:1: top level must be a mapping, found a list\n  - a\n  ^");
  EXPECT_EQ(problem_of(write("text.yaml", "hello\n")).message, "top level must be a mapping, found \"hello\"");
  const Problem large = problem_of(write("large.yaml", std::string(37 << 20, '#')));
  EXPECT_EQ(large.code, "Y28");
  EXPECT_EQ(large.message, "job file is 37 MiB; the limit is 1 MiB");
}

TEST(YamlWriter, WritesWhatAPersonWouldWrite) {
  const std::string text =
      "name: fashion\n"
      "seed: 7\n"
      "rate: 1e-05\n"
      "whole: 3.0\n"
      "empty: {}\n"
      "none: null\n"
      "shape: [28, 28]\n"
      "layers:\n"
      "  - type: Dense\n"
      "    units: 10\n"
      "    weights:\n"
      "      shift: [[1, 2], []]\n"
      "  - type: Flatten\n"
      "  - plain\n"
      "version: \"1.0\"\n"
      "flag: \"yes\"\n"
      "path: /data/x.h5:/group\n";
  EXPECT_EQ(write_yaml(read(text)), text);
}

TEST(YamlWriter, PutsCommentsAboveAndBeside) {
  const Value value = read("a: 1\nb: {c: [x, y]}\n");
  YamlComments comments;
  comments.above = [](const std::string& path, const Value&) { return path == "b.c" ? std::string("two\nlines") : ""; };
  comments.beside = [](const std::string& path, const Value& member) { return path + " " + member.place().text(); };
  EXPECT_EQ(write_yaml(value, comments), "a: 1  # a job.yaml:1:4\nb:\n  # two\n  # lines\n  c: [x, y]  # b.c job.yaml:2:8\n");
}

TEST(YamlWriter, ReadsBackExactly) {
  Value list = Value::list();
  for (const char* text : {"", " ", "a b", "a: b", "a #b", "a:", ":a", "-", "- a", "?", "a,b", "[x]", "{x}", "#", "&a", "*a", "!a", "|", ">", "'", "\"", "%a", "@a", "`a", "~", "null", "true", "TRUE", "no", "010", "0x1F", "1_000", "1.5", "1e5", ".5", ".inf", ".nan", "+1", "lr:0.1", "---", "...", "<<", "=", "a\nb", "\ttab", "tab\t", "nul \x01 del \x7f", "back\\slash", "it's", "\u20ac", "${HOME}", "C:\\x", "12:30", "x\u00a0y", "99999999999999999999"}) {
    list.push_back(text);
  }
  for (const double number : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 3.0, 1e16, 1e22, 0.00392156862745098}) list.push_back(number);
  for (const int64_t number : {std::numeric_limits<int64_t>::min(), int64_t{0}, std::numeric_limits<int64_t>::max()}) list.push_back(number);
  list.push_back(true);
  list.push_back(Value());
  list.push_back(Value::list());
  list.push_back(Value::map());
  list.push_back(Value(Value::List{Value::list(), Value(Value::List{Value(1)})}));
  list.push_back(Value(Value::List{Value(Value::Map{{"x", Value(1)}}), Value(Value::List{Value(Value::Map{{"y", Value::list()}, {"z", list}})})}));
  EXPECT_EQ(read(write_yaml(list)), list);
  Value map = Value::map();
  for (const Value& item : list.as_list()) {
    if (item.is_string()) map.set(item.as_string(), item);
    EXPECT_EQ(read(write_yaml(item)), item) << write_yaml(item);
  }
  map.set("many", list);
  EXPECT_EQ(read(write_yaml(map)), map);
  const Value flow(Value::List{Value("a, b"), Value("c]"), Value("yes"), Value("x: y"), Value("")});
  EXPECT_EQ(read(write_yaml(Value(Value::Map{{"flow", flow}}))).at("flow"), flow);
}

}  // namespace
}  // namespace lockstep
