// The language of .gitignore files, as git itself reads it: which paths of a tree a person wants
// left out. Pure: whoever walks the tree hands over the texts and asks path by path.
//
//   # a comment                       build/       directories of this name, at any depth
//   *.o        any name like it       /data        what stands beside the file itself
//   docs/*.md  from the file's place  a/**/b       any directories in between, or none
//   !keep.o    not left out after all \#x  x\      a backslash takes the next sign as it is
//
// A file speaks of its own directory and all below; the nearest file that says anything of a path
// decides, and in it the last line that matches. What stands in a directory that is left out is not
// asked about: nothing brings it back.
//
// Ownership: values. Threads: const calls from any. Failure: none; a pattern that is broken ("[a")
// matches nothing, as in git.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace berth::ignore {

/// One line of such a file.
struct Pattern {
  std::string text;               // without '!' in front and '/' at the end
  int line = 0;                   // from 1
  bool brings_back = false;       // it began with '!'
  bool directories_only = false;  // it ended in '/'
  bool any_depth = false;         // no '/' in it: compared with the last name of a path
};

/// Without empty lines and comments.
std::vector<Pattern> parse(std::string_view text);
/// `path` is counted from the directory of the pattern's file.
bool matches(const Pattern& pattern, std::string_view path, bool is_directory);

/// Which file of a directory is meant. What an earlier one says goes before all that later ones
/// say.
enum class Source : std::uint8_t { berthignore, gitignore };
inline constexpr std::array<std::string_view, 2> kFileNames{".berthignore", ".gitignore"};

/// All such files of one tree. Paths are counted from its root, "" itself.
class Rules {
 public:
  void add(std::string_view directory, Source source, std::string_view text);

  /// The line that has a path left out: "data/.gitignore:3". nullopt: it is not. The directories
  /// that the path stands in were asked about before, and are not left out.
  std::optional<std::string> leaves_out(std::string_view path, bool is_directory) const;

 private:
  using Files = std::array<std::vector<Pattern>, kFileNames.size()>;
  std::unordered_map<std::string, Files> files_;  // by directory
};

/// A line that brings one path back, for a file of the root.
std::string line_bringing_back(std::string_view path);

}  // namespace berth::ignore
