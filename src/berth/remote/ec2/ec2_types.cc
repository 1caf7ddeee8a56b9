#include <algorithm>
#include <array>
#include <tuple>

#include "berth/machine/machine.h"
#include "berth/remote/ec2/ec2_settings.h"
#include "berth/topology/topology.h"

namespace berth::remote {
namespace {

constexpr std::int64_t kGiB = 1LL << 30;
constexpr std::int64_t kDisk = 4 * kGiB;  // free on every image that we know of
constexpr std::int64_t kMostWidth = 256;

struct Row {
  const char* name;
  std::int64_t cpu, mem_gib, gpus;
  const char* gpu_model;
  std::int64_t gpu_mem_gib, price;  // of each GPU; thousandths of a cent an hour
};

constexpr std::array kRows{
    Row{"t3.medium", 2, 4, 0, "", 0, 4160},
    Row{"t3.large", 2, 8, 0, "", 0, 8320},
    Row{"t3.xlarge", 4, 16, 0, "", 0, 16640},
    Row{"t3.2xlarge", 8, 32, 0, "", 0, 33280},
    Row{"c6i.large", 2, 4, 0, "", 0, 8500},
    Row{"c6i.xlarge", 4, 8, 0, "", 0, 17000},
    Row{"c6i.2xlarge", 8, 16, 0, "", 0, 34000},
    Row{"c6i.4xlarge", 16, 32, 0, "", 0, 68000},
    Row{"c6i.8xlarge", 32, 64, 0, "", 0, 136000},
    Row{"c6i.16xlarge", 64, 128, 0, "", 0, 272000},
    Row{"c6i.32xlarge", 128, 256, 0, "", 0, 544000},
    Row{"m6i.large", 2, 8, 0, "", 0, 9600},
    Row{"m6i.xlarge", 4, 16, 0, "", 0, 19200},
    Row{"m6i.2xlarge", 8, 32, 0, "", 0, 38400},
    Row{"m6i.4xlarge", 16, 64, 0, "", 0, 76800},
    Row{"m6i.8xlarge", 32, 128, 0, "", 0, 153600},
    Row{"m6i.16xlarge", 64, 256, 0, "", 0, 307200},
    Row{"m6i.32xlarge", 128, 512, 0, "", 0, 614400},
    Row{"r6i.large", 2, 16, 0, "", 0, 12600},
    Row{"r6i.xlarge", 4, 32, 0, "", 0, 25200},
    Row{"r6i.2xlarge", 8, 64, 0, "", 0, 50400},
    Row{"r6i.4xlarge", 16, 128, 0, "", 0, 100800},
    Row{"r6i.8xlarge", 32, 256, 0, "", 0, 201600},
    Row{"r6i.16xlarge", 64, 512, 0, "", 0, 403200},
    Row{"r6i.32xlarge", 128, 1024, 0, "", 0, 806400},
    Row{"g4dn.xlarge", 4, 16, 1, "NVIDIA T4", 15, 52600},
    Row{"g4dn.2xlarge", 8, 32, 1, "NVIDIA T4", 15, 75200},
    Row{"g4dn.4xlarge", 16, 64, 1, "NVIDIA T4", 15, 120400},
    Row{"g4dn.8xlarge", 32, 128, 1, "NVIDIA T4", 15, 217600},
    Row{"g4dn.12xlarge", 48, 192, 4, "NVIDIA T4", 15, 391200},
    Row{"g4dn.metal", 96, 384, 8, "NVIDIA T4", 15, 782400},
    Row{"g5.xlarge", 4, 16, 1, "NVIDIA A10G", 22, 100600},
    Row{"g5.2xlarge", 8, 32, 1, "NVIDIA A10G", 22, 121200},
    Row{"g5.4xlarge", 16, 64, 1, "NVIDIA A10G", 22, 162400},
    Row{"g5.8xlarge", 32, 128, 1, "NVIDIA A10G", 22, 244800},
    Row{"g5.12xlarge", 48, 192, 4, "NVIDIA A10G", 22, 567200},
    Row{"g5.24xlarge", 96, 384, 4, "NVIDIA A10G", 22, 814400},
    Row{"g5.48xlarge", 192, 768, 8, "NVIDIA A10G", 22, 1628800},
    Row{"g6.xlarge", 4, 16, 1, "NVIDIA L4", 22, 80480},
    Row{"g6.2xlarge", 8, 32, 1, "NVIDIA L4", 22, 97760},
    Row{"g6.4xlarge", 16, 64, 1, "NVIDIA L4", 22, 132320},
    Row{"g6.12xlarge", 48, 192, 4, "NVIDIA L4", 22, 460160},
    Row{"g6.48xlarge", 192, 768, 8, "NVIDIA L4", 22, 1335040},
    Row{"p3.2xlarge", 8, 61, 1, "Tesla V100-SXM2-16GB", 16, 306000},
    Row{"p3.8xlarge", 32, 244, 4, "Tesla V100-SXM2-16GB", 16, 1224000},
    Row{"p3.16xlarge", 64, 488, 8, "Tesla V100-SXM2-16GB", 16, 2448000},
    Row{"p4d.24xlarge", 96, 1152, 8, "NVIDIA A100-SXM4-40GB", 39, 3277260},
    Row{"p4de.24xlarge", 96, 1152, 8, "NVIDIA A100-SXM4-80GB", 79, 4096570},
    Row{"p5.48xlarge", 192, 2048, 8, "NVIDIA H100 80GB HBM3", 79, 9832000},
};

}  // namespace

std::span<const Ec2Type> known_ec2_types() {
  static const std::vector<Ec2Type> types = [] {
    std::vector<Ec2Type> made;
    for (const Row& row : kRows)
      made.push_back({row.name, row.cpu, row.mem_gib * kGiB, row.gpus, row.gpu_model,
                      row.gpu_mem_gib * kGiB, row.price});
    return made;
  }();
  return types;
}

machine::Block block_of(const Ec2Type& type) {
  machine::Block block;
  block.resources.set(Known::cpu, type.cpu * 1000);
  block.resources.set(Known::mem, type.mem / 8 * 7);
  block.resources.set(Known::disk, kDisk);
  for (int core = 0; core < type.cpu; ++core) block.cores.push_back({core, 0, 1000});
  const int slots = type.gpus > 0 ? topology::slots_of(type.gpu_model) : 0;
  for (int index = 0; index < type.gpus; ++index)
    block.devices.push_back({.uuid = fmt::format("{}/{}", type.name, index),
                             .index = index,
                             .memory = type.gpu_mem,
                             .slots = slots,
                             .size = slots});
  return block;
}

std::int64_t how_often(const Ec2Type& type, const cluster::Wish& wish) {
  const std::int64_t width = std::clamp<std::int64_t>(wish.requirements.width, 1, kMostWidth);
  machine::Machine machine(block_of(type));
  std::vector<machine::Reservation> side_by_side;
  while (std::ssize(side_by_side) < width) {
    auto one = machine.reserve({wish.requirements.min, "", wish.selection});
    if (!one) break;
    side_by_side.push_back(*std::move(one));
  }
  return std::ssize(side_by_side);
}

std::vector<Ec2Type> fitting(std::span<const Ec2Type> types, const cluster::Wish& wish) {
  std::vector<std::pair<double, const Ec2Type*>> found;  // by the price of one `min`
  for (const Ec2Type& type : types)
    if (const std::int64_t often = how_often(type, wish); often > 0)
      found.emplace_back(static_cast<double>(type.price) / static_cast<double>(often), &type);
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->price) < std::tie(b.first, b.second->price);
  });
  std::vector<Ec2Type> best;
  for (const auto& [price, type] : found) best.push_back(*type);
  return best;
}

}  // namespace berth::remote
