#include "berth/fleet/solver/server_size.h"

#include <algorithm>
#include <cmath>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/queueing/thinning.h"

namespace berth::fleet {
namespace {

constexpr double kAnyRate = 1;  // a minute: of an idle server any load shows the limits

template <class T>
void copy_entry(std::map<std::string, T>& to, const std::map<std::string, T>& from,
                const std::string& name) {
  if (const auto found = from.find(name); found != from.end()) to.insert(*found);
}

/// Whether it is about how well a replica serves, as opposed to what is not known of it.
bool is_of_service(Refusal refusal) {
  return refusal == Refusal::none || refusal >= Refusal::itl;
}

class Sizer {
 public:
  Sizer(const System& system, const std::string& name, const Server& server,
        const SizeQuestion& question, const Execution& execution)
      : question_(question), server_(server) {
    size_.name = name;
    size_.server = server;
    size_.target = target_of(system, server);
    size_.model = system.options.model;
    copy_system(system);
    rate_ = rate_per_ms(server.current.load, size_.target, size_.model);
    made_ = candidates(system_, size_.model, execution);
  }

  ServerSize size() {
    for (const std::string& name : made_.accelerators)
      if (question_.accelerator.empty() || name == question_.accelerator)
        size_.accelerators.emplace(name, sized_on(name));
    if (needs_nothing()) size_.accelerators.emplace("", nothing());
    size_.current = sized_now();
    choose();
    return std::move(size_);
  }

 private:
  // Two servers stand for the one, and share its sizing: what is asked; and the limits of as many
  // replicas as it has now, whatever accelerator it keeps and however many it is to have at least.
  enum : std::size_t { kAsked, kLimits };

  void copy_system(const System& system) {
    system_.options = system.options;
    if (server_.current.is_split()) system_.options.disaggregated = true;
    copy_entry(system_.models, system.models, server_.model);
    copy_entry(system_.classes, system.classes, class_of(server_));
    if (question_.accelerator.empty()) system_.accelerators = system.accelerators;
    copy_entry(system_.accelerators, system.accelerators, question_.accelerator);
    for (const Allocation& part : parts_of(server_.current))
      copy_entry(system_.accelerators, system.accelerators, part.accelerator);
    Server asked = server_, limits = server_;
    asked.keep_accelerator = server_.keep_accelerator && question_.accelerator.empty();
    if (question_.replicas > 0) asked.min_replicas = question_.replicas;
    limits.keep_accelerator = false;
    limits.min_replicas = server_.current.replicas;
    double& rate_per_min = limits.current.load.arrivals_per_min;
    if (rate_per_min == 0) rate_per_min = kAnyRate;
    system_.servers = {{"asked", asked}, {"limits", limits}};
  }

  /// The limits of a replica of what the server has now; nullptr: it can serve nothing.
  const Candidate* limit_of(const Allocation& part) const {
    if (part.role == Role::whole) return candidate(kLimits, part.accelerator);
    if (made_.pools.empty()) return nullptr;
    for (const Candidate& pool : made_.pools[kLimits])
      if (pool.role == part.role && made_.accelerators[pool.accelerator] == part.accelerator)
        return &pool;
    return nullptr;
  }
  /// nullptr: the accelerator is no candidate for the server.
  const Candidate* candidate(std::size_t server, const std::string& accelerator) const {
    for (const Candidate& c : made_.of(server))
      if (c.accelerator != Candidate::kNothing && made_.accelerators[c.accelerator] == accelerator)
        return &c;
    return nullptr;
  }
  Refusal refusal(std::size_t server, const std::string& accelerator) const {
    const auto found = std::ranges::lower_bound(made_.accelerators, accelerator);
    if (found == made_.accelerators.end() || *found != accelerator) return Refusal::no_performance;
    const std::size_t place = static_cast<std::size_t>(found - made_.accelerators.begin());
    return made_.refusals[server * made_.accelerators.size() + place];
  }

  static void set_limit(SizedAllocation& to, const Candidate* limit) {
    if (limit == nullptr) return;
    to.rate_per_s = limit->rate_per_s;
    to.rate_binding = to.binding = limit->rate_binding;
    to.is_rate_asked_for = limit->is_rate_asked_for;
  }

  void set_change(SizedAllocation& to) const {
    to.watts = power_w(system_, server_, to.allocation);
    to.value = transition_value(server_.current, to.allocation, size_.model);
    to.difference = difference(server_.current, to.allocation);
  }

  SizedAllocation sized_on(const std::string& accelerator) const {
    SizedAllocation sized;
    const Candidate* needed = candidate(kAsked, accelerator);
    set_limit(sized, needed != nullptr && rate_ > 0 ? needed : candidate(kLimits, accelerator));
    sized.refusal = refusal(kAsked, accelerator);
    if (needed == nullptr) return sized;
    const int replicas = question_.replicas > 0 ? question_.replicas : needed->replicas;
    sized.allocation = allocation_of(system_, made_, server_, *needed, replicas);
    sized.binding = needed->binding;
    sized.saturated = needed->replicas > replicas;
    set_change(sized);
    return sized;
  }

  bool needs_nothing() const {
    const auto of = made_.of(kAsked);
    return !of.empty() && of.front().accelerator == Candidate::kNothing;
  }
  SizedAllocation nothing() const {
    SizedAllocation none;
    none.allocation.load = server_.current.load;
    none.saturated = false;
    set_change(none);
    return none;
  }

  SizedAllocation sized_now() const {
    SizedAllocation now;
    now.allocation = server_.current;
    const auto parts = parts_of(server_.current);
    for (const Allocation& part : parts)
      if (const Refusal found = refusal(kLimits, part.accelerator);
          now.refusal == Refusal::none && found != Refusal::idle &&
          !(part.role != Role::whole && is_of_service(found)))
        now.refusal = found;
    if (parts.size() == 1) set_limit(now, candidate(kLimits, parts[0].accelerator));
    if (!is_of_service(now.refusal)) return now;
    now.saturated = is_saturated(parts);
    if (!parts.empty() && now.refusal != Refusal::memory) operate(now.allocation);
    set_change(now);
    return now;
  }

  bool is_saturated(std::span<const Allocation> parts) const {
    if (rate_ == 0) return false;
    if (parts.size() == 1) {
      const Candidate* limit = candidate(kLimits, parts[0].accelerator);
      return limit == nullptr || limit->replicas > parts[0].replicas;
    }
    const double wanted_per_s = 1000 * rate_ * (1 - kRateRounding);
    double mixed_per_s = 0;
    for (const Allocation& part : parts) {
      const Candidate* limit = limit_of(part);
      const double most_per_s = limit == nullptr ? 0 : limit->rate_per_s * part.replicas;
      if (part.role != Role::whole && most_per_s < wanted_per_s) return true;
      mixed_per_s += most_per_s;
    }
    return mixed_per_s < wanted_per_s;
  }

  /// Gives the parts the figures of their replicas, among which the load is split by what each
  /// takes at most; and the whole its means by load. Each pool of a split has all of the load.
  void operate(Allocation& whole) const {
    const bool is_mix = !whole.parts.empty(), is_split = whole.is_split();
    const std::span<Allocation> parts = is_mix ? std::span(whole.parts) : std::span(&whole, 1);
    std::vector<double> weights;
    double all = 0;
    for (Allocation& part : parts) {
      const Candidate* limit = limit_of(part);
      if (part.batch == 0 && limit != nullptr) part.batch = limit->batch;
      weights.push_back(limit == nullptr ? 0 : limit->rate_per_s * part.replicas);
      if (!is_mix || (is_split && limit != nullptr)) weights.back() = part.replicas;
      all += weights.back();
      part.itl_ms = part.ttft_ms = part.utilisation = 0;
      part.percentiles.reset();
    }
    if (is_mix) whole.itl_ms = whole.ttft_ms = whole.utilisation = 0;
    if (rate_ == 0 || all == 0) return;
    const Demand demand = demand_of(server_.current.load, server_, size_.target);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Allocation& part = parts[i];
      const double weight = weights[i] / all;
      if (weight == 0 || part.batch == 0) continue;
      const double each = (is_split ? 1 : weight) / part.replicas;
      set_figures(part, demand_of(thinned(demand, each), part.role),
                  system_.models.at(server_.model).accelerators.at(part.accelerator), rate_ * each,
                  size_.model);
      if (!is_mix) continue;
      const double of_load = is_split ? 1 : weight;
      part.load.arrivals_per_min = server_.current.load.arrivals_per_min * of_load;
      whole.itl_ms += of_load * part.itl_ms;
      whole.ttft_ms += of_load * part.ttft_ms;
      whole.utilisation += weight * part.utilisation;
    }
  }

  void choose() {
    double least = HUGE_VAL;
    for (const auto& [name, sized] : size_.accelerators)
      if (sized.refusal == Refusal::none && sized.saturated == false && sized.value < least) {
        size_.best = name;
        least = sized.value;
      }
  }

  const SizeQuestion& question_;
  const Server& server_;
  System system_;
  double rate_ = 0;  // requests a ms; 0: idle
  Candidates made_;
  ServerSize size_;
};

}  // namespace

namespace {

Result<ServerSize> checked_size(const System& system, const std::string& name, const Server& server,
                                const SizeQuestion& question, const Execution& execution) {
  if (!question.accelerator.empty())
    BERTH_TRY(find(system.accelerators, question.accelerator, "accelerator"));
  if (question.replicas < 0 || question.replicas > kMostReplicas)
    return fail(ErrorKind::invalid, "numReplicas: expected 0 to {1}, got {0}", question.replicas,
                kMostReplicas);
  if (server.current.is_split() && system.options.model == QueueModel::reference)
    return fail(
        ErrorKind::invalid,
        "{}: it has {}, and the reference model does not support separate prefill and decode", name,
        in_words(server.current));
  return Sizer(system, name, server, question, execution).size();
}

}  // namespace

Result<ServerSize> size_server(const System& system, const std::string& server,
                               const SizeQuestion& question, const Execution& execution) {
  BERTH_ASSIGN(const Server* known, find(system.servers, server, "server"));
  return checked_size(system, server, *known, question, execution);
}

Result<ServerSize> size_as_asked(const System& system, const std::string& server,
                                 const Document& question, const Execution& execution) {
  BERTH_ASSIGN(const Server* known, find(system.servers, server, "server"));
  SizeQuestion asked;
  Server changed = *known;
  if (!trim(question.text).empty()) BERTH_TRY(read_question(question, asked, changed));
  return checked_size(system, server, changed, asked, execution);
}

std::string why_no_best(const ServerSize& size) {
  if (size.accelerators.empty()) return "no accelerators are known";
  std::vector<std::string> parts;
  for (const auto& [name, sized] : size.accelerators)
    parts.push_back(
        fmt::format("{}: {}", clip(name),
                    sized.refusal == Refusal::none ? "saturated" : fleet::name(sized.refusal)));
  return clip(join(parts, "; "), 1000);
}

}  // namespace berth::fleet
