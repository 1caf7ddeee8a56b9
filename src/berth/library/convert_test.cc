#include "berth/library/convert.h"

#include <gtest/gtest.h>

namespace berth::library {
namespace {

TEST(LibraryRequests, SayWhatTheLedgerIsAsked) {
  Request request{
      .resources = {}, .label = "train", .priority = 3, .selection = {.required = {"1", "4"}}};
  request.resources.set(Known::cpu, 1500);
  request.selection.memory_min = 30;
  request.selection.policy = placement::PolicyKind::simple;
  const auto ask = ask_of(request);
  ASSERT_TRUE(ask) << ask.error().message;
  EXPECT_EQ(ask->label, "train");
  EXPECT_EQ(ask->priority, 3);
  EXPECT_EQ(ask->selection.memory_min, 30);
  EXPECT_EQ(ask->selection.policy, placement::PolicyKind::simple);
  EXPECT_EQ(ask->resources.get(Known::gpu), 2) << "as many as are required";
}

TEST(LibraryRequests, ThatAreWrongAreRefused) {
  Request request;
  request.selection.policy = static_cast<placement::PolicyKind>(placement::kPolicies);
  EXPECT_EQ(ask_of(request).error(), (Error{ErrorKind::invalid, "no such policy: 6"}));
  request = {};
  request.selection.objective = static_cast<placement::Objective>(200);
  EXPECT_EQ(ask_of(request).error(), (Error{ErrorKind::invalid, "no such objective: 200"}));
  request = {};
  request.selection.memory_min = -1;
  EXPECT_EQ(ask_of(request).error(),
            (Error{ErrorKind::invalid, "memory_min: expected at least 0, got -1"}));
  request = {};
  request.resources.set(Known::gpu, 1);
  request.selection.required = {"0", "1"};
  EXPECT_EQ(ask_of(request).error().kind, ErrorKind::invalid);
}

TEST(LibraryParts, AreTheBlocksOfTheLedger) {
  machine::Block block;
  block.resources.set(Known::gpu, 1);
  block.cores = {{3, 1, 500}};
  block.devices = {
      {.uuid = "GPU-a", .index = 2, .node = 1, .memory = 80, .slots = 31, .whole = false}};
  const auto part = part_of(block);
  EXPECT_EQ(part.resources, block.resources);
  ASSERT_EQ(part.cores.size(), 1U);
  EXPECT_EQ(part.cores[0].core, 3);
  EXPECT_EQ(part.cores[0].node, 1);
  EXPECT_EQ(part.cores[0].milli, 500);
  ASSERT_EQ(part.devices.size(), 1U);
  EXPECT_EQ(part.devices[0].uuid, "GPU-a");
  EXPECT_EQ(part.devices[0].index, 2);
  EXPECT_EQ(part.devices[0].memory, 80);
  EXPECT_EQ(part.devices[0].slots, 31);
  EXPECT_FALSE(part.devices[0].whole);
}

}  // namespace
}  // namespace berth::library
