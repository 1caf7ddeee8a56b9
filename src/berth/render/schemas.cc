#include "berth/render/schemas.h"

#include "berth/render/machines/clusters.h"
#include "berth/render/machines/examination.h"
#include "berth/render/machines/placement.h"
#include "berth/render/new_file.h"
#include "berth/render/runs/cache.h"

namespace berth::render {

std::string schemas_json() {
  JsonWriter json;
  json.object();
  for (const auto add : {add_cache_schemas, add_cluster_schemas, add_examination_schemas,
                         add_new_file_schemas, add_placement_schemas})
    add(json);
  return json.end().take();
}

}  // namespace berth::render
