// From the text of a YAML file to the tree of its values. Pure; what is wrong is told as
// broken_yaml.h tells it, and never by an exception.
#pragma once

#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "berth/base/broken_yaml.h"
#include "berth/base/document.h"

namespace berth {

/// A tree and what it is made of: nodes and texts lie in one memory, and go with it.
struct Document {
  explicit Document(std::string name) : file(std::move(name)) {}

  std::string file;  ///< For messages.
  std::pmr::monotonic_buffer_resource memory;
  DocumentNode root;
};

/// Fills an empty document; what is refused, and the bounds, are those of Field::parse(). What is
/// wrong with the text, or nothing: then the tree is whole.
std::optional<BrokenYaml> read_yaml(std::string_view text, Document& document);

}  // namespace berth
