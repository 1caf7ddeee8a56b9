// The graph of a flow's run (render/flow_graph.h), for commands that show it.
#pragma once

#include "berth/render/flow_graph.h"

namespace berth::cli {

using render::graph_dot;
using render::graph_json;
using render::graph_text;
using render::steps_table;

}  // namespace berth::cli
