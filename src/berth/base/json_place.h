// A value within a JSON document, for readers of files that other programs write: what is asked of
// it and does not hold is an Error that says where: "benchmarks[2].duration: wanted a number, found
// \"long\"". Pure; in json.cc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/json.h"

namespace berth {

/// A place in a document, which it keeps alive. A path is keys with dots between them:
/// "metadata.model". Cheap to copy, immutable.
class JsonPlace {
 public:
  /// The root of a document. invalid: as parse_json().
  static Result<JsonPlace> parse(std::string_view text);

  bool is_map() const;
  bool is_list() const;
  bool is_number() const;
  bool is_text() const;

  /// The value at `path` below a map; nullopt where it is absent or null, or no map leads there.
  std::optional<JsonPlace> find(std::string_view path) const;
  /// The same; invalid where find() finds nothing.
  Result<JsonPlace> get(std::string_view path) const;
  /// The elements of a list, at most `most`.
  Result<std::vector<JsonPlace>> items(std::size_t most) const;

  Result<double> number() const;  // finite
  Result<double> number(std::string_view path) const;
  /// The number at `path`, or `otherwise` where find() finds nothing.
  Result<double> number_or(std::string_view path, double otherwise) const;
  Result<std::string> text() const;
  /// A list of at most `most` finite numbers.
  Result<std::vector<double>> numbers(std::size_t most) const;

  /// "path: message", of kind invalid.
  std::unexpected<Error> error(std::string_view message) const;

 private:
  JsonPlace(std::shared_ptr<const Json> document, const Json& value, std::string path)
      : document_(std::move(document)), value_(&value), path_(std::move(path)) {}
  std::unexpected<Error> wanted(std::string_view what) const;

  std::shared_ptr<const Json> document_;
  const Json* value_;
  std::string path_;
};

}  // namespace berth
