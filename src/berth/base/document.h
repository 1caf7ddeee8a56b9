// One mapping for YAML and JSON: a document is a tree that remembers the line of every value, and a
// Field is a place in it. Everything asked of a Field that does not hold is an Error that names
// file, line and key: "sweep.yaml:7: params.lr.max: expected a number, got 'lots'".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/format.h"
#include "berth/base/result.h"
#include "berth/base/time.h"

namespace berth {

/// A value of a document. Texts and children belong to the document, and two aliases of one anchor
/// share them. It is small, because a large flow has millions.
struct DocumentNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;                       // a scalar that is text even if it looks like a number
  int line = 0;                              // counted from 1, of a map's value that of its key
  std::string_view key{};                    // of a value in a map
  std::string_view text{};                   // of a scalar
  std::span<const DocumentNode> children{};  // of a list or a map, in the order of the file
};

struct Document;  // read_yaml.h

/// A place in a document. Cheap to copy; keeps the document alive. Immutable, so any thread.
class Field {
 public:
  /// Reads YAML, of which JSON is a part; a {name} that adjoins text before it is text, even within
  /// {…} and […], where YAML would begin a map: {n: counts/{index}.txt}. `file` names it in errors.
  /// A key `<<` takes over those keys of a map, or of a list of maps, that its own map lacks.
  /// invalid: broken syntax, a control character, a key given twice, nested more than 64 deep, more
  /// values than the text has bytes and than 1,000,000, or 64 MiB of text (aliases expanded), or
  /// anything after its end.
  static Result<Field> parse(std::string_view text, std::string file);

  DocumentNode::Kind kind() const { return node_->kind; }
  const DocumentNode& node() const { return *node_; }
  bool is_null() const { return kind() == DocumentNode::Kind::null; }
  bool is_scalar() const { return kind() == DocumentNode::Kind::scalar; }
  bool is_list() const { return kind() == DocumentNode::Kind::list; }
  bool is_map() const { return kind() == DocumentNode::Kind::map; }

  /// A map whose keys are all among `keys`; an unknown one is an error that suggests what was
  /// meant.
  Status expect_keys(std::initializer_list<std::string_view> keys) const;
  /// The same of the keys that a format lists.
  Status expect_keys(const MapFormat& format) const;
  /// The errors about all keys that the format does not list, in the order of the file; of no map:
  /// none.
  std::vector<Error> unknown_keys(const MapFormat& format) const;
  /// This map with what it lacks from `defaults`, another map, of this document or another, which
  /// may have defaults itself: find(), get() and entries() see keys of all; where both have a map
  /// under a key, so do these. A null under a key of its own stands for nothing. Errors name the
  /// file in which the value stands.
  Field with_defaults(const Field& defaults) const;
  /// The value under `key`; nullopt where it is absent, null, or this is no map.
  std::optional<Field> find(std::string_view key) const;
  /// The value under `key`; invalid where absent.
  Result<Field> get(std::string_view key) const;
  Result<std::vector<std::pair<std::string, Field>>> entries() const;  // of a map
  Result<std::vector<Field>> items() const;                            // of a list

  Result<std::string> text() const;  // any scalar, as written
  Result<std::int64_t> integer() const;
  Result<double> number() const;
  Result<Duration> duration() const;
  /// One of `choices`, as its index.
  Result<std::size_t> choice(std::span<const std::string_view> choices) const;
  /// The value whose name it is.
  template <class Enum, std::size_t kCount>
  Result<Enum> choice(const Names<Enum, kCount>& names) const {
    BERTH_ASSIGN(const std::size_t i, choice(names.all()));
    return *names.value(names.all()[i]);
  }

  /// "file:line: path: message", of kind invalid.
  std::unexpected<Error> error(std::string_view message) const;
  /// The same for an error that came from a parser of the scalar.
  std::unexpected<Error> error(const Error& cause) const { return error(cause.message); }

 private:
  std::unexpected<Error> wanted_map() const;
  Status expect_keys(std::span<const std::string_view> keys) const;
  std::unexpected<Error> unknown_key(const DocumentNode& value,
                                     std::span<const std::string_view> keys) const;
  Field(std::shared_ptr<const Document> document, const DocumentNode& node, std::string path)
      : document_(std::move(document)), node_(&node), path_(std::move(path)) {}
  Field child(const DocumentNode& node, std::string path) const;
  /// The value under a key of this map's own, with its defaults.
  Field own(const DocumentNode& node) const;
  /// What stands under the key in the defaults, called as if it stood here.
  std::optional<Field> beside(std::string_view key) const;
  std::string path_of(std::string_view key) const;

  std::shared_ptr<const Document> document_;
  const DocumentNode* node_;
  std::shared_ptr<const Field> defaults_{};  // of a map; none: nullptr
  std::string path_;
};

}  // namespace berth
