#include "berth/render/machines/examination.h"

#include <gtest/gtest.h>

namespace berth::render {
namespace {

using State = engine::Finding::State;

TEST(Examination, IsWrittenForPeopleAndPrograms) {
  const engine::Examination examination{{{"limits", State::faulty, "none \"held\"", "do this"},
                                         {"tools", State::optional, "no ssh", "apt"},
                                         {"gpus", State::good, "none", ""}}};
  EXPECT_EQ(to_text(examination, {}),
            "to do     limits    none \"held\"\n"
            "                    → do this\n"
            "optional  tools     no ssh\n"
            "                    → apt\n"
            "ok        gpus      none\n"
            "1 thing to do\n");
  EXPECT_EQ(to_json(examination),
            R"({"version":1,"faults":1,"findings":[{"topic":"limits","state":"to do","found":)"
            R"("none \"held\"","advice":"do this"},{"topic":"tools","state":"optional","found":)"
            R"("no ssh","advice":"apt"},{"topic":"gpus","state":"ok","found":"none","advice":""}]})"
            "\n");
}

}  // namespace
}  // namespace berth::render
