// berth/berth.h over the C++ face of the library: topologies, reservations, plans. Studies and runs
// are in c_runs.cc.
#include <array>

#include "berth/base/json_writer.h"
#include "berth/fleet.h"
#include "berth/library/c_call.h"
#include "berth/machine.h"
#include "berth/topology.h"

using berth::ErrorKind;
using berth::fail;
using berth::JsonWriter;
using berth::Known;
using berth::Result;
using berth::Status;
using berth::c::check_given;
using berth::c::give_text;
using berth::c::guarded_call;
using berth::c::put_text;

struct berth_topology {
  berth::topology::Topology topology;
};
struct berth_machine {
  berth::Machine machine;
};
struct berth_reservation {
  berth::Reservation reservation;
};

namespace {

void write_part(JsonWriter& json, const berth::MachinePart& part) {
  json.object().key("resources").raw(berth::to_json(part.resources)).key("cores").array();
  for (const berth::CorePart& core : part.cores)
    json.object().add("core", core.core).add("node", core.node).add("milli", core.milli).end();
  json.end().key("devices").array();
  for (const berth::DevicePart& device : part.devices) {
    json.object().add("uuid", device.uuid).add("index", device.index);
    json.add("memory", device.memory).add("slots", device.slots).add("whole", device.whole).end();
  }
  json.end().end();
}

Status give_part(const berth::MachinePart& part, char** to) {
  JsonWriter json;
  write_part(json, part);
  return give_text(json.take(), to);
}

Result<berth::Request> request_of(const berth_request& asked) {
  berth::Request request{.resources = {},
                         .label = asked.label == nullptr ? "" : asked.label,
                         .priority = asked.priority};
  const std::array<std::pair<Known, std::int64_t>, berth::kKnownCount> amounts{
      {{Known::gpu, asked.gpu},
       {Known::gpu_slots, asked.gpu_slots},
       {Known::gpu_mem, asked.gpu_mem},
       {Known::cpu, asked.cpu_milli},
       {Known::mem, asked.mem},
       {Known::disk, asked.disk}}};
  for (const auto& [known, amount] : amounts) {
    if (amount < 0)
      return fail(ErrorKind::invalid, "{}: expected at least 0, got {}", name(known), amount);
    request.resources.set(known, amount);
  }
  if (asked.wait_ms < 0)
    return fail(ErrorKind::invalid, "wait_ms: expected at least 0, got {}", asked.wait_ms);
  return request;
}

Status give_topology(Result<berth::topology::Topology> topology, berth_topology** to) {
  BERTH_TRY(topology);
  *to = new berth_topology{*std::move(topology)};
  return {};
}

}  // namespace

const char* berth_version(void) {
  return berth::version().data();
}

void berth_free_text(char* text) {
  std::free(text);
}

int berth_topology_discover(berth_topology** topology, char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(topology));
    return give_topology(berth::topology::discover(), topology);
  });
}

int berth_topology_named(const char* name_or_path, berth_topology** topology, char* message,
                         std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(name_or_path, topology));
    return give_topology(berth::topology::named(name_or_path), topology);
  });
}

int berth_topology_read(const char* text, std::size_t size, berth_topology** topology,
                        char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(text, topology));
    return give_topology(berth::topology::read({text, size}, "text"), topology);
  });
}

void berth_topology_destroy(berth_topology* topology) {
  delete topology;
}

std::int32_t berth_topology_device_count(const berth_topology* topology) {
  return topology == nullptr ? 0 : static_cast<std::int32_t>(topology->topology.devices.size());
}

int berth_topology_device(const berth_topology* topology, std::int32_t number, berth_device* out) {
  if (out == nullptr || number < 0 || number >= berth_topology_device_count(topology))
    return BERTH_INVALID;
  const auto& device = topology->topology.devices[static_cast<std::size_t>(number)];
  berth_device made{};
  made.index = device.index;
  made.numa = device.numa;
  made.slots = berth::topology::slots_of(device.model);
  made.health = static_cast<std::int32_t>(device.health);
  made.memory = device.memory;
  put_text(made.uuid, device.uuid);
  put_text(made.pci, device.pci);
  put_text(made.model, device.model);
  *out = made;
  return BERTH_OK;
}

int berth_topology_scores(const berth_topology* topology, std::int32_t* scores, std::size_t room) {
  const auto devices = static_cast<std::size_t>(berth_topology_device_count(topology));
  if (topology == nullptr || scores == nullptr || room < devices * devices) return BERTH_INVALID;
  for (std::size_t a = 0; a < devices; ++a)
    for (std::size_t b = 0; b < devices; ++b)
      scores[a * devices + b] = a == b ? 0 : berth::topology::score(topology->topology.link(a, b));
  return BERTH_OK;
}

int berth_topology_json(const berth_topology* topology, char** json) {
  return guarded_call({}, [&]() -> Status {
    BERTH_TRY(check_given(topology, json));
    return give_text(berth::topology::write_json(topology->topology), json);
  });
}

int berth_machine_open(const char* ledger, berth_machine** machine, char* message,
                       std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(machine));
    berth::MachineOptions options;
    if (ledger != nullptr) options.ledger = ledger;
    BERTH_ASSIGN(auto opened, berth::Machine::open(options));
    *machine = new berth_machine{std::move(opened)};
    return {};
  });
}

void berth_machine_destroy(berth_machine* machine) {
  delete machine;
}

int berth_machine_json(berth_machine* machine, char** json, char* message,
                       std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(machine, json));
    BERTH_ASSIGN(const auto capacity, machine->machine.capacity());
    BERTH_ASSIGN(const auto holders, machine->machine.holders());
    JsonWriter writer;
    write_part(writer.object().key("total"), capacity.total);
    write_part(writer.key("free"), capacity.free);
    writer.key("holders").array();
    for (const berth::Holder& holder : holders) {
      writer.object().add("label", holder.label).add("pid", holder.pid);
      write_part(writer.add("waiting", holder.waiting).key("part"), holder.part);
      writer.end();
    }
    return give_text(writer.end().end().take(), json);
  });
}

int berth_machine_dry_run(berth_machine* machine, const berth_request* request, char** json,
                          char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(machine, request, json));
    BERTH_ASSIGN(const auto asked, request_of(*request));
    BERTH_ASSIGN(const auto part, machine->machine.dry_run(asked));
    return give_part(part, json);
  });
}

int berth_machine_reserve(berth_machine* machine, const berth_request* request,
                          berth_reservation** reservation, char* message,
                          std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(machine, request, reservation));
    BERTH_ASSIGN(const auto asked, request_of(*request));
    BERTH_ASSIGN(auto held,
                 machine->machine.reserve(asked, std::chrono::milliseconds(request->wait_ms)));
    *reservation = new berth_reservation{std::move(held)};
    return {};
  });
}

int berth_reservation_json(const berth_reservation* reservation, char** json) {
  return guarded_call({}, [&]() -> Status {
    BERTH_TRY(check_given(reservation, json));
    return give_part(reservation->reservation.part(), json);
  });
}

int berth_reservation_release(berth_reservation* reservation, char* message,
                              std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(reservation));
    return reservation->reservation.release();
  });
}

void berth_reservation_destroy(berth_reservation* reservation) {
  delete reservation;
}

int berth_plan(const char* document, std::size_t size, std::int64_t time_limit_ms, char** json,
               char* message, std::size_t message_size) {
  return guarded_call({message, message_size}, [&]() -> Status {
    BERTH_TRY(check_given(document, json));
    if (time_limit_ms < 0)
      return fail(ErrorKind::invalid, "time_limit_ms: expected at least 0, got {}", time_limit_ms);
    const berth::Fleet::Document text{"fleet", {document, size}};
    BERTH_ASSIGN(const auto fleet, berth::Fleet::read({&text, 1}));
    return give_text(fleet.plan(std::chrono::milliseconds(time_limit_ms)).json, json);
  });
}
