// Any bytes are a log up to where they make sense, and a writer goes on there. Two files, parted by
// a NUL-free marker: the log of the run and one attempt's own.
#include "berth/run/state/log_file.h"
#include "berth/testing/fake_env.h"
#include "fuzz.h"

namespace {

using namespace berth;

struct Shown {
  std::size_t frames = 0, size = 0;
};

Shown read_all(os::Env& env, Token token = {}) {
  auto reader = run::LogReader::open(env, "/run");
  BERTH_ASSERT(reader.has_value());
  Shown shown;
  const auto show = [&](const run::LogFrame& frame) {
    ++shown.frames;
    shown.size += frame.bytes.size() + 32;
  };
  BERTH_ASSERT(reader->read(token, show).has_value());
  const Shown first = shown;
  BERTH_ASSERT(reader->read(token, show).has_value() && shown.frames == first.frames);
  return shown;
}

}  // namespace

void berth::fuzz(std::string_view text) {
  constexpr std::string_view kMarker = "====";
  constexpr Token kNew{INT64_MAX};
  const auto at = std::min(text.find(kMarker), text.size());
  os::FakeEnv env;
  env.put("/run/output.log", std::string(text.substr(0, at)));
  if (at < text.size()) env.put("/run/output-1.log", std::string(text.substr(at + kMarker.size())));
  const auto before = read_all(env);
  const auto new_before = read_all(env, kNew);
  BERTH_ASSERT(before.size <= text.size());
  auto writer = run::LogWriter::open(env, "/run");
  BERTH_ASSERT(writer.has_value());
  writer->append({{1}, kNew, exec::Stream::err, "new"});
  BERTH_ASSERT(writer->flush().has_value());
  BERTH_ASSERT(read_all(env).frames == before.frames + 1);
  BERTH_ASSERT(read_all(env, kNew).frames == new_before.frames + 1);
}
