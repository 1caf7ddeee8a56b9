#include "berth/testing/failing_store.h"

#include <gtest/gtest.h>

#include "berth/testing/store.h"

namespace berth::store {
namespace {

TEST(FailingStore, FailsTheCallsThatItIsToldTo) {
  const auto inner = memory_store();
  FailingStore store(*inner);
  const Error full{ErrorKind::full, "no space"};
  store.arm({.call = 2, .times = 2, .error = full});
  EXPECT_TRUE(store.submit(new_run("a")));
  EXPECT_EQ(store.submit(new_run("a")).error(), full);
  EXPECT_EQ(store.runs().error(), full);
  EXPECT_EQ(store.runs().value().size(), 1U) << "nothing took effect";
  EXPECT_EQ(store.calls(), 4);
  store.arm({.error = full, .took_effect = true});
  EXPECT_EQ(store.submit(new_run("a")).error(), full);
  EXPECT_EQ(store.runs().value().size(), 2U);
  store.arm({.error = full, .took_effect = true});
  EXPECT_EQ(store.find_run("b-1").error().kind, ErrorKind::not_found) << "its own error first";
  store.arm({.error = full});
  store.disarm();
  EXPECT_TRUE(store.runs());
}

}  // namespace
}  // namespace berth::store
