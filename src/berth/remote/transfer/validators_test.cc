#include "berth/remote/transfer/validators.h"

#include <gtest/gtest.h>

namespace berth::remote {
namespace {

TEST(Validators, DatesOfHttpAreRead) {
  EXPECT_EQ(http_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(http_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(http_seconds("Wed, 29 Feb 2012 23:59:60 GMT"), 1330560000);
  for (const char* text : {"", "0", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                           "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov -994 08:49:37 GMT"})
    EXPECT_FALSE(http_seconds(text)) << text;
}

TEST(Validators, ADateIsStrongAMinuteAfterTheFileChanged) {
  const char* modified = "Sun, 06 Nov 1994 08:49:37 GMT";
  EXPECT_TRUE(is_strong_date(modified, "Sun, 06 Nov 1994 08:50:37 GMT"));
  EXPECT_FALSE(is_strong_date(modified, "Sun, 06 Nov 1994 08:50:36 GMT"));
  EXPECT_FALSE(is_strong_date(modified, modified));
  EXPECT_FALSE(is_strong_date(modified, "Sun, 06 Nov 1994 08:49:36 GMT")) << "clocks differ";
  EXPECT_FALSE(is_strong_date(modified, "")) << "no Date, no proof";
  EXPECT_FALSE(is_strong_date("", "Sun, 06 Nov 1994 08:50:37 GMT"));
}

TEST(Validators, AnETagIsStrongInQuotesWithoutW) {
  EXPECT_TRUE(is_strong_etag("\"1\""));
  for (const char* etag : {"", "\"", "1", "W/\"1\"", "w/\"1\"", "\"1"})
    EXPECT_FALSE(is_strong_etag(etag)) << etag;
}

}  // namespace
}  // namespace berth::remote
