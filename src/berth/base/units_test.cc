#include "berth/base/units.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <ctime>

#include "berth/base/rng.h"

namespace berth {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kGi = 1 << 30;

template <class Value>
struct Case {
  std::string_view text;
  Value value;
};

template <class Read, class Cases>
void reads(Read read, const Cases& cases) {
  for (const auto& [text, value] : cases) {
    const auto got = read(text);
    ASSERT_TRUE(got) << text << ": " << got.error().message;
    EXPECT_EQ(*got, value) << text;
  }
}

template <class Read>
void refuses(Read read, std::initializer_list<std::string_view> texts) {
  for (const auto text : texts) {
    const auto got = read(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().kind, ErrorKind::invalid);
  }
}

TEST(Units, ReadsSizes) {
  constexpr Case<std::int64_t> kCases[] = {{"0", 0},
                                           {"4096", 4096},
                                           {"4096B", 4096},
                                           {"10G", 10'000'000'000},
                                           {"10GB", 10'000'000'000},
                                           {"10Gi", 10 * kGi},
                                           {"10GiB", 10 * kGi},
                                           {"10gib", 10 * kGi},
                                           {"2gb", 2'000'000'000},
                                           {"512MiB", 512 << 20},
                                           {"3k", 3000},
                                           {"3Ki", 3072},
                                           {"1T", 1'000'000'000'000},
                                           {"1P", 1'000'000'000'000'000},
                                           {"1Ti", kGi << 10},
                                           {"1Pi", kGi << 20},
                                           {"9E", 9'000'000'000'000'000'000},
                                           {"7Ei", kGi * kGi * 7},
                                           {"1.5Gi", kGi * 3 / 2},
                                           {"0.0000001G", 100},
                                           {".5k", 500},
                                           {"1.000", 1},
                                           {"0.0009765625Ki", 1},
                                           {" 10 G ", 10'000'000'000},
                                           {"9223372036854775807", INT64_MAX},
                                           {"9.223372036854775807E", INT64_MAX}};
  reads(parse_bytes, kCases);
}

TEST(Units, RefusesSizesThatAreNoneAndNamesThem) {
  refuses(parse_bytes, {"",
                        " ",
                        "G",
                        "b",
                        ".",
                        "-1",
                        "+1",
                        "--1",
                        "1.5",
                        "1.0001k",
                        "0.3Ki",
                        "10X",
                        "10GG",
                        "10bb",
                        "10 b b",
                        "1e3",
                        "0x10",
                        "10G5",
                        "1,5G",
                        "1..5G",
                        "1 000",
                        "9223372036854775808",
                        "9.3E",
                        "8Ei",
                        "99999999999999999999",
                        "1G\n1",
                        std::string_view("1G\0", 3),
                        "١G"});
  EXPECT_EQ(parse_bytes("10X").error().message,
            "expected a size such as 512MiB, 10G or 4096, got '10X'");
}

TEST(Units, ShowsSizesShort) {
  constexpr std::pair<std::int64_t, std::string_view> kCases[] = {{0, "0 B"},
                                                                  {1023, "1023 B"},
                                                                  {1024, "1 KiB"},
                                                                  {1536, "1.5 KiB"},
                                                                  {kGi - 1, "1 GiB"},
                                                                  {10 * kGi, "10 GiB"},
                                                                  {10'000'000'000, "9.3 GiB"},
                                                                  {INT64_MAX, "8 EiB"},
                                                                  {-1536, "-1.5 KiB"},
                                                                  {INT64_MIN, "-8 EiB"}};
  for (const auto& [bytes, text] : kCases) EXPECT_EQ(format_bytes(bytes), text);
}

TEST(Units, AShownSizeReadsBackWithinItsRounding) {
  Rng rng(1);
  for (int round = 0; round < 10'000; ++round) {
    const auto bytes = static_cast<std::int64_t>(rng.next() >> (2 + rng.below(62)));
    // One decimal of a binary unit need not be whole bytes: read its number and its unit apart.
    const std::string text = format_bytes(bytes);
    const auto blank = text.find(' ');
    const auto number = parse_number(text.substr(0, blank));
    const auto unit = parse_bytes("1" + text.substr(blank + 1));
    ASSERT_TRUE(number && unit) << text;
    EXPECT_LE(std::abs(*number * static_cast<double>(*unit) - static_cast<double>(bytes)),
              static_cast<double>(*unit) * 0.051)
        << text;
    EXPECT_EQ(parse_bytes(fmt::format("{}", bytes)), bytes);
  }
}

TEST(Units, ReadsThousandths) {
  constexpr Case<std::int64_t> kCases[] = {
      {"2", 2000},  {"1.5", 1500},     {".001", 1},
      {"1.", 1000}, {"1.50000", 1500}, {" 3 ", 3000},
      {"0", 0},     {"007", 7000},     {"9223372036854775.807", INT64_MAX}};
  reads(parse_milli, kCases);
  refuses(parse_milli, {"", ".", "-1", "+1", "1.0001", "1k", "1 2", "1e3", "9223372036854775.808",
                        "9223372036854775807", "nan", "inf"});
}

TEST(Units, ThousandthsReadBackExactly) {
  Rng rng(2);
  for (int round = 0; round < 10'000; ++round) {
    const auto milli = static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63)));
    EXPECT_EQ(parse_milli(format_milli(milli)), milli);
    EXPECT_EQ(format_milli(-milli), (milli == 0 ? "" : "-") + format_milli(milli));
  }
  EXPECT_EQ(format_milli(1050), "1.05");
  EXPECT_EQ(format_milli(INT64_MIN), "-9223372036854775.808");
}

TEST(Units, ReadsDurations) {
  constexpr Case<Duration> kCases[] = {{"90", 90s},
                                       {"0", 0s},
                                       {"90s", 90s},
                                       {"10m", 10min},
                                       {"1h30m", 90min},
                                       {"1h 30m", 90min},
                                       {"1H30M", 90min},
                                       {"2d", 48h},
                                       {"250ms", 250ms},
                                       {"7us", 1ms},
                                       {"1.5s", 1500ms},
                                       {".5", 500ms},
                                       {"1m1m", 2min},
                                       {"0.000000001s", 1ms},
                                       {" 1 h ", 1h},
                                       {"1001us", 2ms},
                                       {"9223372036.854", 9'223'372'036'854ms}};
  reads(parse_duration, kCases);
  EXPECT_EQ(parse_age("7d"), std::chrono::days(7));
  EXPECT_EQ(parse_age(" 0 "), Duration(0));
  for (const auto* bare : {"7", " 7 ", "0.5"}) EXPECT_FALSE(parse_age(bare)) << bare;
  EXPECT_EQ(parse_age("7").error().message, "'7' has no unit: expected 7d for days, or 7h, 7m, 7s");
  refuses(parse_duration, {"", " ", "h", "-1s", "1h30", "0h30", "30 1h", "1 2", "1x", "1.5.5s",
                           "1h-1m", "1e3s", "0.0000000001s", "9223372036.854775807", "106752d",
                           "106751d1d", "99999999999999999999d", "1min", "inf"});
}

TEST(Units, ShowsDurationsShort) {
  constexpr std::pair<Duration, std::string_view> kCases[] = {
      {0ms, "0ms"},    {350ms, "350ms"},  {1999us, "1ms"}, {4250ms, "4.2s"}, {59'999ms, "59.9s"},
      {185s, "3m05s"}, {130min, "2h10m"}, {76h, "3d04h"},  {-1s, "0s"}};
  for (const auto& [duration, text] : kCases) EXPECT_EQ(format_duration(duration), text);
}

TEST(Units, AShownDurationReadsBackWithinItsRounding) {
  Rng rng(3);
  for (int round = 0; round < 10'000; ++round) {
    const Duration duration(static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63))));
    const auto read = parse_duration(format_duration(duration));
    ASSERT_TRUE(read) << format_duration(duration);
    const Duration unit = duration < 1s     ? Duration(1ms)
                          : duration < 1min ? Duration(100ms)
                          : duration < 1h   ? Duration(1s)
                          : duration < 24h  ? Duration(1min)
                                            : Duration(1h);
    EXPECT_TRUE(*read <= duration && duration - *read < unit) << format_duration(duration);
  }
}

TEST(Units, DatesAsTheSystemsOwnCalendarDoes) {
  EXPECT_EQ(format_utc(Wall{}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_utc(wall_from_ms(-1)), "1969-12-31T23:59:59.999Z");
  Rng rng(4);
  for (int round = 0; round < 10'000; ++round) {
    const auto ms = static_cast<std::int64_t>(rng.below(18'000'000'000'000)) - 9'000'000'000'000;
    const auto seconds = static_cast<std::time_t>(std::floor(static_cast<double>(ms) / 1000));
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    EXPECT_EQ(format_utc(wall_from_ms(ms)),
              fmt::format("{}.{:03}Z", text.data(), ms - seconds * 1000));
  }
}

TEST(Units, DatesReadBack) {
  Rng rng(5);
  for (int round = 0; round < 10'000; ++round) {
    const Wall time =
        wall_from_ms(1000 * (static_cast<std::int64_t>(rng.below(18'000'000'000)) - 9'000'000'000));
    const std::string text = format_utc(time).substr(0, 19) + "Z";
    EXPECT_EQ(*parse_utc(text), time) << text;
  }
  EXPECT_EQ(*parse_utc("1970-01-02T00:01Z"), wall_from_ms(86'460'000));
  for (const auto* wrong : {"", "2026-11-21", "2026-02-30T00:00:00Z", "2026-11-21T24:00:00Z",
                            "2026-11-21 05:04:03Z", "2026-11-21T05:04:03", "-026-11-21T05:04:03Z",
                            "0001-01-01T00:00:00Z", "2026-11-21T05:04:03.5Z", "2026-11-21T05:60Z"})
    EXPECT_FALSE(parse_utc(wrong)) << wrong;
}

TEST(Units, BytesAsAFileHasThemReadBackExactly) {
  constexpr std::pair<std::int64_t, std::string_view> kCases[] = {{0, "0"},
                                                                  {7, "7"},
                                                                  {1500, "1.5K"},
                                                                  {100'000'000, "100M"},
                                                                  {1'500'000'000, "1.5G"},
                                                                  {1 << 29, "512Mi"},
                                                                  {std::int64_t{3} << 30, "3Gi"},
                                                                  {2'000'000'000'000, "2T"},
                                                                  {16'384'000'000, "16.384G"}};
  for (const auto& [bytes, text] : kCases) EXPECT_EQ(written_bytes(bytes), text);
  Rng rng(9);
  for (int round = 0; round < 100'000; ++round) {
    const auto bytes = static_cast<std::int64_t>(rng.next() >> (2 + rng.next() % 50));
    const std::int64_t even = bytes / 1024 * (round % 2 == 0 ? 1000 : 1024);
    EXPECT_EQ(parse_bytes(written_bytes(even)), even) << even;
    EXPECT_EQ(parse_bytes(written_bytes(bytes)), bytes) << bytes;
  }
}

TEST(Units, ReadsIntegers) {
  constexpr Case<std::int64_t> kCases[] = {{"0", 0},
                                           {"-0", 0},
                                           {"007", 7},
                                           {"-9223372036854775808", INT64_MIN},
                                           {"9223372036854775807", INT64_MAX}};
  reads(parse_integer, kCases);
  refuses(parse_integer,
          {"", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "-", "9223372036854775808", "1_0"});
}

TEST(Units, ReadsFiniteNumbers) {
  constexpr Case<double> kCases[] = {
      {"1", 1},       {"-1.5", -1.5},     {"+2", 2},
      {"1e-4", 1e-4}, {"1E3", 1000},      {".5", 0.5},
      {"5.", 5},      {"5e-324", 5e-324}, {"1.7976931348623157e308", 1.7976931348623157e308}};
  reads(parse_number, kCases);
  refuses(parse_number, {"", "inf", "-inf", "nan", "NaN", "infinity", "+inf", "1e999", "1e",
                         "0x1p3", "1 ", " 1", "1,5", "+", "++1", "+-1", "--1", "1f", "."});
}

TEST(Units, AmountsAreRoundedButNeverToNone) {
  EXPECT_EQ(round_amount(0), 0);
  EXPECT_EQ(round_amount(1e-300), 1);
  EXPECT_EQ(round_amount(0.4), 1);
  EXPECT_EQ(round_amount(1.4), 1);
  EXPECT_EQ(round_amount(2.5), 3);
  EXPECT_EQ(round_amount(-0.4), 0);
}

TEST(Units, NumbersReadBackExactly) {
  Rng rng(5);
  for (int round = 0; round < 100'000; ++round) {
    const auto value = std::bit_cast<double>(rng.next());
    if (!std::isfinite(value)) continue;
    EXPECT_EQ(parse_number(format_number(value)), value);
  }
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(32), "32");
}

}  // namespace
}  // namespace berth
