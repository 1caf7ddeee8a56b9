// berth/fleet.h over the planner.
#include "berth/fleet.h"

#include "berth/base/text.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/fleet/solver/server_size.h"
#include "berth/library/fleet_convert.h"

namespace berth {

struct Fleet::State {
  fleet::System system;
  std::vector<std::string> notes;
  fleet::Execution execution = engine::planning_execution("simulated");
};

namespace {

template <class Entries>
std::vector<std::string> names_in(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& [name, _] : entries) names.push_back(name);
  return names;
}

Result<fleet::Server> server_of(const fleet::System& system, const std::string& name) {
  const auto found = system.servers.find(name);
  if (found != system.servers.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [each, _] : system.servers) names.push_back(each);
  const auto meant = nearest(name, names);
  return fail(ErrorKind::not_found, "no server '{}'{}", clip(name),
              meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?");
}

/// The entries of `from` replace those of the same name.
template <class Entries>
void put_over(Entries& to, const Entries& from) {
  for (const auto& [name, entry] : from) to.insert_or_assign(name, entry);
}

}  // namespace

Fleet::Fleet(std::unique_ptr<State> state) : state_(std::move(state)) {}
Fleet::Fleet(const Fleet& other) : state_(std::make_unique<State>(*other.state_)) {}
Fleet::Fleet(Fleet&&) noexcept = default;
Fleet& Fleet::operator=(const Fleet& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}
Fleet& Fleet::operator=(Fleet&&) noexcept = default;
Fleet::~Fleet() = default;

Result<Fleet> Fleet::read(std::span<const Document> documents) {
  std::vector<fleet::Document> texts;
  for (const Document& each : documents) texts.push_back({each.name, each.text});
  BERTH_ASSIGN(auto reading, fleet::read_documents(texts));
  auto state = std::make_unique<State>();
  state->system = std::move(reading.system);
  state->notes = std::move(reading.notes);
  return Fleet(std::move(state));
}

Result<Fleet> Fleet::read_path(const std::string& path) {
  const auto env = os::posix_env();
  BERTH_ASSIGN(auto texts, engine::fleet_documents(*env, path));
  std::vector<Document> documents;
  for (auto& text : texts) documents.push_back({std::move(text.name), std::move(text.text)});
  return read(documents);
}

std::vector<std::string> Fleet::notes() const {
  auto notes = state_->notes;
  engine::note_missing(state_->system, [&](const auto& more) {
    notes.insert(notes.end(), more.begin(), more.end());
  });
  return notes;
}

std::string Fleet::write() const {
  return fleet::write_document(state_->system);
}

std::vector<std::string> Fleet::servers() const {
  return names_in(state_->system.servers);
}

std::vector<std::string> Fleet::accelerators() const {
  return names_in(state_->system.accelerators);
}

Status Fleet::put(const Document& document) {
  const fleet::Document text{document.name, document.text};
  BERTH_ASSIGN(auto reading, fleet::read_documents({&text, 1}));
  fleet::System system = state_->system;
  put_over(system.accelerators, reading.system.accelerators);
  put_over(system.capacities, reading.system.capacities);
  put_over(system.servers, reading.system.servers);
  for (const auto& [name, model] : reading.system.models) {
    put_over(system.models[name].accelerators, model.accelerators);
    put_over(system.models[name].starts, model.starts);
  }
  for (const auto& [name, service_class] : reading.system.classes) {
    fleet::ServiceClass& ours = system.classes[name];
    ours.priority = service_class.priority;
    put_over(ours.targets, service_class.targets);
  }
  BERTH_TRY(fleet::check(system));
  state_->system = std::move(system);
  state_->notes = std::move(reading.notes);
  return {};
}

Status Fleet::remove(std::string_view path) {
  const auto dot = path.find('.');
  const auto kind = path.substr(0, dot);
  const std::string name(dot == std::string_view::npos ? "" : path.substr(dot + 1));
  fleet::System& system = state_->system;
  if (kind == "server") return fleet::remove(system.servers, name);
  if (kind == "accelerator") return fleet::remove(system.accelerators, name);
  if (kind == "model") return fleet::remove(system.models, name);
  if (kind == "class") return fleet::remove(system.classes, name);
  if (kind == "capacity") return fleet::remove(system.capacities, name);
  return fail(ErrorKind::not_found,
              "expected server.NAME, accelerator.NAME, model.NAME, class.NAME or capacity.TYPE, "
              "got '{}'",
              clip(path));
}

Status Fleet::set(std::string_view path, double value) {
  return fleet::set_value(state_->system, path, value);
}

Fleet::Options Fleet::options() const {
  return library::options_of(state_->system.options);
}

Status Fleet::set_options(const Options& options) {
  fleet::System& system = state_->system;
  BERTH_ASSIGN(const auto wanted, library::options_of(options));
  const auto before = std::exchange(system.options, wanted);
  auto status = fleet::check(system);
  if (!status) system.options = before;
  return status;
}

Fleet::Plan Fleet::plan(std::chrono::milliseconds time_limit) const {
  fleet::Execution execution = state_->execution;
  const auto env = os::posix_env();
  if (time_limit > time_limit.zero()) engine::limit_time(execution, *env, time_limit);
  return library::plan_of(fleet::plan(state_->system, execution));
}

Result<std::vector<Fleet::Candidate>> Fleet::candidates(const std::string& server) const {
  BERTH_ASSIGN(const auto size, fleet::size_server(state_->system, server, {}, state_->execution));
  std::vector<Candidate> candidates;
  for (const auto& [accelerator, sized] : size.accelerators)
    candidates.push_back(library::candidate_of(accelerator, sized));
  return candidates;
}

Result<Fleet::Allocation> Fleet::current(const std::string& server) const {
  BERTH_ASSIGN(const auto found, server_of(state_->system, server));
  return library::allocation_of(found.current);
}

Status Fleet::apply(const std::string& server, const Allocation& allocation) {
  BERTH_ASSIGN(auto changed, server_of(state_->system, server));
  BERTH_ASSIGN(changed.current, library::allocation_of(allocation, changed.current));
  return fleet::put(state_->system.servers, server, std::move(changed));
}

Result<Fleet::Allocation> Fleet::allocate(const std::string& server,
                                          const std::string& accelerator) const {
  BERTH_ASSIGN(const auto made,
               fleet::create(state_->system, server, accelerator, state_->execution));
  return library::allocation_of(made);
}

Result<Fleet::Allocation> Fleet::scale(const std::string& server, const Allocation& allocation,
                                       const Load& load) const {
  BERTH_ASSIGN(const auto found, server_of(state_->system, server));
  BERTH_ASSIGN(const auto from, library::allocation_of(allocation, found.current));
  BERTH_ASSIGN(const auto wanted, library::load_of(load, found.current.load));
  BERTH_ASSIGN(const auto scaled,
               fleet::scale(state_->system, server, from, wanted, state_->execution));
  return library::allocation_of(scaled);
}

Result<Fleet::Allocation> Fleet::reallocate(const std::string& server) const {
  BERTH_ASSIGN(const auto moved, fleet::reallocate(state_->system, server, state_->execution));
  return library::allocation_of(moved);
}

Result<bool> Fleet::saturated(const std::string& server, const Allocation& allocation,
                              double arrivals_per_min) const {
  BERTH_ASSIGN(const auto found, server_of(state_->system, server));
  BERTH_ASSIGN(const auto held, library::allocation_of(allocation, found.current));
  return fleet::saturated(state_->system, server, held, arrivals_per_min, state_->execution);
}

Result<double> Fleet::power_w(const std::string& server, const Allocation& allocation) const {
  BERTH_ASSIGN(const auto found, server_of(state_->system, server));
  BERTH_ASSIGN(const auto held, library::allocation_of(allocation, found.current));
  return fleet::power_w(state_->system, found, held);
}

Result<double> Fleet::accelerator_power_w(const std::string& accelerator,
                                          double utilisation) const {
  BERTH_ASSIGN(const auto found, fleet::get(state_->system.accelerators, accelerator));
  if (!(utilisation >= 0 && utilisation <= 1))
    return fail(ErrorKind::invalid, "utilisation: expected 0 to 1, got {}", utilisation);
  return fleet::power_w(found, utilisation);
}

double Fleet::transition_value(const Allocation& from, const Allocation& to) const {
  return fleet::transition_value(library::priced(from), library::priced(to),
                                 state_->system.options.model);
}

Fleet::Difference Fleet::difference(const Allocation& from, const Allocation& to) {
  auto made = fleet::difference(library::priced(from), library::priced(to));
  return {std::move(made.from), std::move(made.to), made.replicas, made.cost};
}

}  // namespace berth
