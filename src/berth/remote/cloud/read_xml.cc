#include <pugixml.hpp>

#include "berth/remote/cloud/cloud.h"

namespace berth::remote {
namespace {

constexpr std::size_t kMostBytes = 8U << 20;
constexpr int kMostDeep = 64;

Status convert(const pugi::xml_node& node, int depth, Xml& to) {
  if (depth > kMostDeep) return fail(ErrorKind::invalid, "nested more than {} deep", kMostDeep);
  to.name = node.name();
  to.text = node.text().get();
  for (const auto& child : node.children())
    if (child.type() == pugi::node_element)
      BERTH_TRY(convert(child, depth + 1, to.children.emplace_back()));
  return {};
}

}  // namespace

Result<Xml> read_xml(std::string_view text) {
  if (text.size() > kMostBytes)
    return fail(ErrorKind::invalid, "{} bytes of XML, at most {}", text.size(), kMostBytes);
  pugi::xml_document document;
  const auto read =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!read)
    return fail(ErrorKind::invalid, "no XML at byte {}: {}", read.offset, read.description());
  Xml root;
  BERTH_TRY(convert(document.document_element(), 1, root));
  if (root.name.empty()) return fail(ErrorKind::invalid, "XML without an element");
  return root;
}

}  // namespace berth::remote
