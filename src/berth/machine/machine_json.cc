#include <nlohmann/json.hpp>

#include "berth/machine/machine.h"

namespace berth::machine {
namespace {

Json amounts(const Resources& resources) {
  Json values = Json::object();
  resources.each([&](std::string_view resource, std::int64_t amount) {
    const bool whole = measure(resource) != Measure::milli || amount % 1000 == 0;
    const std::int64_t units = measure(resource) == Measure::milli ? amount / 1000 : amount;
    if (whole)
      values[std::string(resource)] = units;
    else
      values[std::string(resource)] = static_cast<double>(amount) / 1000;
  });
  return values;
}

}  // namespace

Json to_json(const Request& request) {
  return {{"holder", request.holder}, {"resources", amounts(request.resources)}};
}

Json to_json(const Block& block) {
  Json cores = Json::array();
  for (const auto& share : block.cores)
    cores.push_back({{"core", share.core}, {"node", share.node}, {"milli", share.milli}});
  return {{"resources", amounts(block.resources)}, {"cores", std::move(cores)}};
}

}  // namespace berth::machine
