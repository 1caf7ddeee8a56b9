#include "berth/resource/resources.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "berth/base/rng.h"

namespace berth {
namespace {

constexpr std::int64_t kGi = 1 << 30;
__extension__ using Wide = __int128;  // g++ calls it pedantic otherwise

Resources of(std::initializer_list<std::pair<std::string_view, std::int64_t>> list) {
  Resources resources;
  for (const auto& [resource, amount] : list) resources.set(resource, amount);
  return resources;
}

TEST(Resources, AnAmountBelowZeroIsNothing) {
  Resources resources = of({{"cpu", 1000}, {"licence", 2000}});
  resources.set(Known::cpu, -1);
  resources.set("licence", INT64_MIN);
  EXPECT_TRUE(resources.empty());
}

TEST(Resources, ReadsAmountsInTheUnitsOfTheirNames) {
  struct Case {
    std::string_view resource, text;
    std::int64_t amount;
  };
  constexpr std::array kCases{Case{"cpu", "1.5", 1500},
                              Case{"cpu", "2", 2000},
                              Case{"cpu", ".001", 1},
                              Case{"mem", "10G", 10'000'000'000},
                              Case{"mem", "512MiB", 512 << 20},
                              Case{"disk", "2gb", 2'000'000'000},
                              Case{"gpu_mem", "1.5Gi", 3 * kGi / 2},
                              Case{"mem", "4096", 4096},
                              Case{"gpu", "2", 2},
                              Case{"gpu_slots", " 8 ", 8},
                              Case{"licence", "0.5", 500},
                              Case{"mem", "9223372036854775807", INT64_MAX},
                              Case{"gpu", "0", 0}};
  for (const auto& [resource, text, amount] : kCases) {
    const auto read = parse_amount(resource, text);
    ASSERT_TRUE(read) << resource << ' ' << text << ": " << read.error().message;
    EXPECT_EQ(*read, amount) << resource << ' ' << text;
  }
}

TEST(Resources, RefusesAmountsThatAreNone) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kCases{
      {{"cpu", "-1"},
       {"cpu", ""},
       {"cpu", "1.0001"},
       {"cpu", "two"},
       {"cpu", "1G"},
       {"cpu", "9223372036854775807"},
       {"mem", "-4096"},
       {"mem", "10X"},
       {"mem", "1.5"},
       {"mem", "9223372036854775808"},
       {"mem", "9Ei9"},
       {"gpu", "1.5"},
       {"gpu", "-0"},
       {"gpu", "99999999999999999999"}}};
  for (const auto& [resource, text] : kCases) {
    const auto read = parse_amount(resource, text);
    ASSERT_FALSE(read) << resource << ' ' << text;
    EXPECT_EQ(read.error().kind, ErrorKind::invalid);
  }
}

TEST(Resources, WritesAmountsForPeople) {
  EXPECT_EQ(format_amount("cpu", 1500), "1.5");
  EXPECT_EQ(format_amount("mem", 9986000000), "9.3 GiB");
  EXPECT_EQ(format_amount("gpu", 2), "2");
  EXPECT_EQ(format_amount("licence", 2000), "2");
  EXPECT_EQ(to_string({}), "nothing");
  EXPECT_EQ(to_string(of({{"zoo", 1000}, {"ant", 500}, {"mem", 10 * kGi}, {"cpu", 1500}})),
            "cpu 1.5, mem 10 GiB, ant 0.5, zoo 1");
}

TEST(Resources, EchoesARequestInTheUnitThatItWasWrittenIn) {
  EXPECT_EQ(requested_amount("mem", 400'000'000'000), "400G");
  EXPECT_EQ(requested_amount("mem", 1'500'000'000), "1.5G");
  EXPECT_EQ(requested_amount("gpu_mem", std::int64_t{17} << 30), "17 GiB");
  EXPECT_EQ(requested_amount("mem", 4096), "4 KiB");
  EXPECT_EQ(requested_amount("mem", 9'986'000'001), "9.3 GiB");
  EXPECT_EQ(requested_amount("cpu", 1500), "1.5");
  EXPECT_EQ(requested_text("mem", 400'000'000'000), "400G of memory");
  EXPECT_EQ(requested_text("cpu", 1000), "1 core");
  EXPECT_EQ(requested_text("cpu", 500), "0.5 cores");
  EXPECT_EQ(requested_text("gpu", 2), "2 GPUs");
  EXPECT_EQ(requested_text("gpu_slots", 1), "1 GPU slot");
  EXPECT_EQ(requested_text("gpu_mem", std::int64_t{17} << 30), "17 GiB of GPU memory");
  EXPECT_EQ(requested_text("disk", 1'000'000'000'000), "1T of disk space");
  EXPECT_EQ(requested_text("licence", 2000), "2 of 'licence'");
  EXPECT_EQ(amount_text("mem", 400'000'000'000), "372.5 GiB of memory");
  EXPECT_EQ(available_text("licence", 0), "none");
  EXPECT_EQ(available_text("cpu", 1500), "1.5");
}

TEST(Resources, KnowsWhichNamesAPersonMayAdd) {
  for (const auto* good : {"licence", "a", "tape_2", "cpu"}) EXPECT_TRUE(valid_resource_name(good));
  for (const auto* bad : {"", "2tapes", "_x", "Licence", "a b", "a-b", "é"})
    EXPECT_FALSE(valid_resource_name(bad)) << bad;
  EXPECT_TRUE(valid_resource_name(std::string(64, 'a')));
  EXPECT_FALSE(valid_resource_name(std::string(65, 'a')));
}

TEST(Resources, KnownNamesAreTheSameByNameAndByPlace) {
  for (std::size_t i = 0; i < kKnownCount; ++i) {
    const auto known = static_cast<Known>(i);
    Resources resources;
    resources.set(name(known), 7);
    EXPECT_EQ(resources.get(known), 7);
    resources.set(known, 0);
    EXPECT_TRUE(resources.empty());
  }
}

TEST(Resources, ANameSetToNothingIsAsIfNeverSet) {
  Resources resources = of({{"cows", 1000}, {"cpu", 500}});
  resources.set("cows", 0);
  EXPECT_EQ(resources, of({{"cpu", 500}}));
  EXPECT_EQ(resources.get("cows"), 0);
}

TEST(Resources, TheScarcestThatIsShortIsNamed) {
  const Resources have = of({{"cpu", 1000}, {"mem", kGi}, {"cows", 1000}});
  EXPECT_TRUE(have.covers(have));
  EXPECT_TRUE(have.covers({}));
  EXPECT_EQ(have.first_short(have), "");
  EXPECT_EQ(have.first_short(of({{"cows", 1001}, {"mem", kGi + 1}, {"cpu", 1001}})), "cpu");
  EXPECT_EQ(have.first_short(of({{"cows", 1001}, {"mem", kGi + 1}})), "mem");
  EXPECT_EQ(have.first_short(of({{"cows", 1001}, {"pigs", 1}})), "cows");
  EXPECT_EQ(have.first_short(of({{"disk", 1}, {"gpu", 1}})), "gpu");
}

TEST(Resources, AnErrorLeavesTheAmountsAsTheyWere) {
  for (const auto* resource : {"mem", "cows"}) {
    Resources much = of({{"cpu", 5}, {resource, INT64_MAX}, {"zoo", 1}});
    const Resources before = much;
    const auto added = much.add(of({{"cpu", 1}, {resource, 1}, {"zoo", 1}}));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().kind, ErrorKind::impossible);
    EXPECT_TRUE(added.error().message.starts_with(resource));
    EXPECT_EQ(much, before);
    EXPECT_FALSE(much.times(2));
    EXPECT_EQ(*much.times(1), before);
    EXPECT_TRUE(much.times(0)->empty());
  }
  Resources little = of({{"cpu", 1000}, {"mem", kGi}});
  const auto taken = little.subtract(of({{"cpu", 500}, {"mem", 2 * kGi}}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "mem: requested 2 GiB, have 1 GiB");
  EXPECT_EQ(little, of({{"cpu", 1000}, {"mem", kGi}}));
}

TEST(Resources, CountsHowManyFitSideBySide) {
  const Resources have = of({{"cpu", 8000}, {"mem", 10 * kGi}, {"cows", 3000}});
  EXPECT_EQ(have.fits(of({{"cpu", 1000}}), 100), 8);
  EXPECT_EQ(have.fits(of({{"cpu", 1000}, {"mem", 4 * kGi}}), 100), 2);
  EXPECT_EQ(have.fits(of({{"cows", 1000}}), 2), 2);
  EXPECT_EQ(have.fits(of({{"pigs", 1}}), 100), 0);
  EXPECT_EQ(have.fits({}, 100), 100);
}

/// Amounts of every size, up to the greatest there is.
Resources random_resources(Rng& rng) {
  constexpr std::array<std::string_view, 5> kNames{"cpu", "mem", "gpu", "cows", "pigs"};
  Resources resources;
  for (const auto resource : kNames)
    if (rng.below(3) != 0)
      resources.set(resource, static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63))));
  return resources;
}

TEST(Resources, WhatIsReservedPlusWhatIsFreeIsTheTotal) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    Resources total = random_resources(rng);
    Resources free = total;
    Resources held;
    std::vector<Resources> parts;
    for (int step = 0; step < 100; ++step) {
      if (parts.empty() || rng.below(3) != 0) {
        const Resources part = random_resources(rng);
        const bool fits = free.covers(part);
        ASSERT_EQ(free.subtract(part).has_value(), fits);
        if (!fits) continue;
        ASSERT_TRUE(held.add(part)) << "a part of the total cannot overflow";
        parts.push_back(part);
      } else {
        ASSERT_TRUE(held.subtract(parts.back()));
        ASSERT_TRUE(free.add(parts.back()));
        parts.pop_back();
      }
      Resources sum = held;
      ASSERT_TRUE(sum.add(free));
      ASSERT_EQ(sum, total) << "seed " << seed << " step " << step;
    }
  }
}

TEST(Resources, SumsAndProductsAreExactOrRefused) {
  Rng rng(7);
  for (int round = 0; round < 20000; ++round) {
    const Resources a = random_resources(rng);
    const Resources b = random_resources(rng);
    const auto times = static_cast<std::int64_t>(rng.next() >> (1 + rng.below(63)));
    bool sum_fits = true;
    bool product_fits = true;
    for (const std::string_view resource : {"cpu", "mem", "gpu", "cows", "pigs"}) {
      const auto wide = static_cast<Wide>(a.get(resource));
      sum_fits = sum_fits && wide + b.get(resource) <= INT64_MAX;
      product_fits = product_fits && wide * times <= INT64_MAX;
    }
    Resources sum = a;
    ASSERT_EQ(sum.add(b).has_value(), sum_fits);
    const auto product = a.times(times);
    ASSERT_EQ(product.has_value(), product_fits);
    for (const std::string_view resource : {"cpu", "mem", "gpu", "cows", "pigs"}) {
      const std::int64_t addend = sum_fits ? b.get(resource) : 0;
      ASSERT_EQ(sum.get(resource), a.get(resource) + addend);
      if (product_fits) {
        ASSERT_EQ(product->get(resource), a.get(resource) * times);
      }
    }
    ASSERT_TRUE(!sum_fits || (sum.covers(a) && sum.covers(b)));
  }
}

TEST(Resources, WhatFitsManyTimesIsCoveredThatManyTimesAndNotOnceMore) {
  Rng rng(11);
  for (int round = 0; round < 20000; ++round) {
    const Resources have = random_resources(rng);
    const Resources unit = random_resources(rng);
    constexpr std::int64_t kMost = 1000;
    const std::int64_t count = have.fits(unit, kMost);
    const auto many = unit.times(count);
    ASSERT_TRUE(many);
    ASSERT_TRUE(have.covers(*many));
    if (count == kMost) continue;
    const auto more = unit.times(count + 1);
    ASSERT_TRUE(!more || !have.covers(*more));
  }
}

}  // namespace
}  // namespace berth
