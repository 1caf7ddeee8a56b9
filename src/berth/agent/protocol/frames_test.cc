// What travels as frames, from machines that may send anything.
#include "berth/agent/protocol/frames.h"

#include <gtest/gtest.h>

namespace berth::agent {
namespace {

TEST(Frames, AnErrorIsReadAsItWasWritten) {
  const Error error{ErrorKind::corrupt, "a: 1 is not 2"};
  EXPECT_EQ(parse_error(to_text(error)), error);
  const Error long_one{ErrorKind::io, std::string(10000, 'x')};
  EXPECT_EQ(to_text(parse_error(to_text(long_one))), to_text(long_one));
}

TEST(Frames, AnErrorFromElsewhereDoesNothingToATerminal) {
  for (const std::string start : {"8 ", ""}) {
    const auto error = parse_error(start + "\x1b]0;title\a\r\n" + std::string(1 << 20, 'x'));
    EXPECT_LT(error.message.size(), 5000U);
    EXPECT_EQ(error.message.find_first_of("\x1b\a\r\n"), std::string::npos) << error.message;
    EXPECT_TRUE(error.message.starts_with("\\x1b]0;title\\x07\\x0d\\x0a")) << error.message;
  }
}

}  // namespace
}  // namespace berth::agent
