// A fileset that is taken is written back byte for byte, and its parts are filesets; a pattern is
// matched by what it says.
#include "berth/fileset/fileset.h"

#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  using namespace fileset;
  const auto [pattern, path] = halves(text);
  (void)matches(pattern, path);
  if (path.find('.') != 0 && path.find("/.") == std::string_view::npos)
    BERTH_ASSERT(matches(literal_pattern(path), path));
  const std::string header = "berth fileset 1\n";
  const auto fileset = parse_fileset(header + std::string(text));
  if (!fileset) return;
  BERTH_ASSERT(to_text(*fileset) == header + std::string(text));
  for (const auto& each : paths(*fileset)) {
    const auto part_of_it = part(*fileset, each);
    if (part_of_it) BERTH_ASSERT(parse_fileset(to_text(*part_of_it)) == *part_of_it);
  }
}
