#include "berth/os/plugin.h"
#include "berth/remote/cloud/cloud.h"

namespace berth::remote {

Result<const Cloud*> load_cloud(os::Env& env) {
  static const Cloud* loaded = nullptr;
  if (loaded == nullptr) {
    BERTH_ASSIGN(void* found, os::load_plugin(env, "berth-cloud.so", "berth_cloud_3"));
    loaded = static_cast<const Cloud*>(found);
  }
  return loaded;
}

const Xml* Xml::find(std::string_view child) const {
  for (const Xml& each : children)
    if (each.name == child) return &each;
  return nullptr;
}

std::string_view Xml::text_of(std::string_view path) const {
  const auto slash = path.find('/');
  const Xml* child = find(path.substr(0, slash));
  if (child == nullptr) return {};
  return slash == path.npos ? std::string_view(child->text)
                            : child->text_of(path.substr(slash + 1));
}

}  // namespace berth::remote
