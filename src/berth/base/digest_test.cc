#include "berth/base/digest.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"

namespace berth {
namespace {

TEST(Digest, KnownAnswers) {
  // FIPS 180-4: the examples of NIST.
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, PartsMakeTheWhole) {
  Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    std::string text(rng.below(1000), ' ');
    for (char& c : text) c = static_cast<char>(rng.next());
    Sha256 hash;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t part = rng.below(200);
      hash.add(std::string_view(text).substr(at, part));
      at += part;
    }
    EXPECT_EQ(hash.finish(), sha256(text));
  }
}

TEST(Digest, ReadsWhatItWrites) {
  const auto digest = sha256("x");
  EXPECT_EQ(*parse_digest(to_hex(digest)), digest);
  for (const auto& hex : {std::string(), std::string(63, 'a'), std::string(65, 'a'),
                          std::string(64, 'A'), std::string(63, 'a') + "g"})
    EXPECT_FALSE(parse_digest(hex)) << hex;
}

}  // namespace
}  // namespace berth
