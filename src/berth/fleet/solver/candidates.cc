// Every accelerator for every server. Servers with the same demand share the sizings, which is
// where the time goes; then each gets its replicas and the figures of one of them under its part of
// the load. What a replica sees of a server's arrivals depends on how many there are, so that their
// number is searched for: by the closed form, and where Execution::rate_limit decides once more.
#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "berth/fleet/model/system_view.h"
#include "berth/fleet/model/value.h"
#include "berth/fleet/queueing/thinning.h"

namespace berth::fleet {
namespace {

constexpr double kMsPerMin = 60'000, kMsPerS = 1000;
constexpr std::size_t kServersAtOnce = 64;  // per call of a thread
constexpr std::size_t kQuestionsBetweenStops = 16;

/// A server, with what its names stand for.
struct Row {
  const Server* server = nullptr;
  const Model* model = nullptr;
  const Target* target = nullptr;
  Refusal refusal = Refusal::none;  // of all accelerators
  Demand demand;
  double rate = 0;  // requests a ms; 0: idle
};

Row row_of(const System& system, const Server& server, QueueModel model) {
  Row row;
  row.server = &server;
  const Load& load = server.current.load;
  const auto known_model = system.models.find(server.model);
  if (known_model != system.models.end()) row.model = &known_model->second;
  const auto known_class = system.classes.find(class_of(server));
  const bool has_class = known_class != system.classes.end();
  if (has_class) {
    const auto target = known_class->second.targets.find(server.model);
    if (target != known_class->second.targets.end()) row.target = &target->second;
  }
  row.refusal = row.model == nullptr    ? Refusal::no_model
                : !has_class            ? Refusal::no_class
                : row.target == nullptr ? Refusal::no_target
                                        : Refusal::none;
  if (row.refusal != Refusal::none) return row;
  row.demand = demand_of(load, server, *row.target);
  row.rate = rate_per_ms(load, *row.target, model);
  return row;
}

/// What a server is sized on: an accelerator, for one role.
struct Column {
  const std::string* name = nullptr;
  const Accelerator* accelerator = nullptr;
  std::uint32_t place = 0;  // of the accelerator
  Role role = Role::whole;
};

/// Under no load: as many as the least, at a batch that is full.
Candidate idle_candidate(const Server& server, const Performance& performance) {
  Candidate c;
  c.replicas = server.min_replicas;
  c.batch = std::max(1, server.max_batch > 0 ? server.max_batch : performance.max_batch);
  const double decode_ms = performance.alpha_ms + performance.beta_ms;
  c.itl_ms = decode_ms;
  c.ttft_ms = decode_ms + performance.gamma_ms * c.batch;
  const double both_ms = c.ttft_ms + performance.alpha_ms + performance.beta_ms * c.batch;
  c.rate_per_s = both_ms > 0 ? 1000 * c.batch / both_ms : 0;
  c.binding = Binding::min_replicas;
  return c;
}

/// Demands of one model on one accelerator differ in nothing but this.
double key_of(const Demand& demand) {
  return demand.arrival_cv;
}

RateQuestion question_of(const Demand& demand, const Performance& performance,
                         const Sizing& sizing) {
  const Load load{.in_tokens = demand.in_tokens,
                  .out_tokens = demand.out_tokens,
                  .in_cv = demand.in_cv,
                  .out_cv = demand.out_cv,
                  .arrival_cv = demand.arrival_cv,
                  .in_histogram = demand.in_histogram,
                  .out_histogram = demand.out_histogram};
  return {performance,   load,        sizing.best_batch,         demand.max_queue,
          demand.target, demand.role, sizing.best_rate * kMsPerS};
}

/// The limit was asked for: it holds at the best batch, of which the closed form knew.
void decide(Sizing& sizing, double rate) {
  sizing.is_asked_for = true;
  sizing.rate = sizing.best_rate = rate;
  sizing.batch = sizing.best_batch;
  if (!(rate > 0)) sizing.refusal = refusal_of(sizing.binding);
}

/// Where the closed form finds that a percentile's target cannot be met, it need not have the last
/// word: sized as if there were no percentiles, so that the limit can be asked for.
Sizing size_by_averages(Demand demand, const Performance& performance, const Sizing& refused) {
  if (!is_of_percentile(refused.refusal)) return refused;
  demand.target.percentiles = {};
  Sizing sizing = size_replica(demand, performance, QueueModel::calibrated);
  if (sizing.refusal != Refusal::none) return refused;
  sizing.binding = binding_of(refused.refusal);
  return sizing;
}

class Maker {
 public:
  Maker(const System& system, QueueModel model, Candidates& made)
      : system_(system), model_(model), made_(made) {
    for (const auto& [name, server] : system.servers)
      rows_.push_back(row_of(system, server, model));
    add_columns(Role::whole);
    if (system.options.disaggregated && model == QueueModel::calibrated) {
      add_columns(Role::prefill);
      add_columns(Role::decode);
      made_.pools.resize(rows_.size());
    }
    by_server_.resize(rows_.size());
    made_.refusals.assign(rows_.size() * system.accelerators.size(), Refusal::none);
    group();
  }

  void make(const Execution& execution) {
    sizings_.resize((groups_.size() - 1) * columns_.size());
    settled_.resize(rows_.size() * columns_.size());
    for_each(execution, groups_.size() - 1, [&](std::size_t g) { settle_group(g); });
    if (execution.rate_limit) ask(execution);
    for_each(execution, groups_.size() - 1, [&](std::size_t g) { make_group(g); });
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      made_.begin.push_back(made_.all.size());
      made_.all.insert(made_.all.end(), by_server_[s].begin(), by_server_[s].end());
      by_server_[s] = {};
    }
    made_.begin.push_back(made_.all.size());
  }

 private:
  void add_columns(Role role) {
    std::uint32_t place = 0;
    for (const auto& [name, accelerator] : system_.accelerators)
      columns_.push_back({&name, &accelerator, place++, role});
  }

  /// Servers of one model and demand stand together in order_, from groups_[g] to groups_[g + 1].
  void group() {
    for (std::size_t s = 0; s < rows_.size(); ++s) order_.push_back(s);
    const auto key = [&](std::size_t s) {
      const Row& row = rows_[s];
      return std::tuple(std::string_view(row.server->model), row.rate == 0, row.demand);
    };
    std::ranges::stable_sort(order_, std::less{}, key);
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (i == 0 || key(order_[i]) != key(order_[i - 1])) groups_.push_back(i);
    groups_.push_back(order_.size());
  }

  /// Calls visit(s, column, performance) for the servers of a group under load and what they may
  /// have.
  template <class Visit>
  void each_loaded(std::size_t g, const Visit& visit) const {
    for (std::size_t i = groups_[g]; i < groups_[g + 1]; ++i) {
      const Row& row = rows_[order_[i]];
      if (row.refusal != Refusal::none || row.rate == 0) return;  // nor has the rest of the group
      for (std::size_t column = 0; column < columns_.size(); ++column)
        if (const Performance* performance = performance_of(row, columns_[column]))
          visit(order_[i], column, *performance);
    }
  }

  /// nullptr: the server may not have it.
  const Performance* performance_of(const Row& row, const Column& column) const {
    const auto found = row.model->accelerators.find(*column.name);
    if (found == row.model->accelerators.end() || keeps_another(*row.server, *column.name))
      return nullptr;
    const bool can_split = found->second.transfer && row.demand.out_tokens > 1;
    return column.role == Role::whole || can_split ? &found->second : nullptr;
  }

  /// What each of the server's replicas asks for.
  Demand demand_of_each(std::size_t s, std::size_t column, double replicas) const {
    if (model_ == QueueModel::reference) return rows_[s].demand;
    return demand_of(thinned(rows_[s].demand, 1 / replicas), columns_[column].role);
  }
  ReplicaSearch search_of(std::size_t s, std::size_t column, double start) const {
    const double cv = model_ == QueueModel::reference ? 1 : rows_[s].demand.arrival_cv;
    const int least = columns_[column].role == Role::whole ? rows_[s].server->min_replicas : 1;
    return {cv, std::max(1.0, static_cast<double>(least)), start};
  }

  /// The closed form's sizing, which the group shares. Of one group on one thread at a time.
  const Sizing& sized(std::size_t g, std::size_t column, const Demand& demand,
                      const Performance& performance) {
    auto& of = sizings_[g * columns_.size() + column];
    const auto known = of.find(key_of(demand));
    if (known != of.end()) return known->second;
    return of.emplace(key_of(demand), size_replica(demand, performance, model_)).first->second;
  }

  void settle_group(std::size_t g) {
    each_loaded(g, [&](std::size_t s, std::size_t column, const Performance& performance) {
      ReplicaSearch search = search_of(s, column, 1);
      const Sizing* sizing = nullptr;
      const auto look = [&] {
        sizing = &sized(g, column, demand_of_each(s, column, search.replicas()), performance);
      };
      do {
        look();
        search.look(replicas_for(*sizing, model_, rows_[s].rate));
      } while (!search.is_found());
      look();
      settled_[s * columns_.size() + column] = {search.replicas(), sizing};
    });
  }

  /// A server on a column whose limit execution.rate_limit is to decide.
  struct Open {
    std::size_t g = 0, s = 0, column = 0;
    const Performance* performance = nullptr;
    ReplicaSearch search;
  };
  using Questions = std::map<RateQuestion, std::vector<Sizing*>>;

  /// Has the limits that percentiles set decided by execution.rate_limit; equal questions are asked
  /// once. Where the time is over, the closed form has the last word on what is left.
  void ask(const Execution& execution) {
    std::vector<Open> open;
    for (std::size_t g = 0; g + 1 < groups_.size(); ++g)
      each_loaded(g, [&](std::size_t s, std::size_t column, const Performance& performance) {
        const auto& [replicas, sizing] = settled_[s * columns_.size() + column];
        const bool is_served = sizing->refusal == Refusal::none && sizing->best_rate > 0;
        if (rows_[s].demand.target.has_percentiles() &&
            (is_served || is_of_percentile(sizing->refusal)))
          open.push_back(
              {g, s, column, &performance, search_of(s, column, is_served ? replicas : 1)});
      });
    asked_.resize(sizings_.size());
    while (!open.empty()) {
      Questions questions;
      for (const Open& o : open) add_question(o, questions);
      answer(questions, execution);
      std::erase_if(open, [&](Open& o) { return is_settled(o); });
    }
  }

  void add_question(const Open& o, Questions& questions) {
    const Demand demand = demand_of_each(o.s, o.column, o.search.replicas());
    auto& of = asked_[o.g * columns_.size() + o.column];
    if (of.contains(key_of(demand))) return;
    const Sizing& closed_form = sized(o.g, o.column, demand, *o.performance);
    Sizing& sizing = of[key_of(demand)] = size_by_averages(demand, *o.performance, closed_form);
    if (sizing.refusal == Refusal::none)
      questions[question_of(demand, *o.performance, sizing)].push_back(&sizing);
  }

  /// Where the time is over, what is left stays undecided.
  void answer(const Questions& questions, const Execution& execution) {
    std::vector<const Questions::value_type*> each;
    for (const auto& question : questions) each.push_back(&question);
    for (std::size_t first = 0; first < each.size(); first += kQuestionsBetweenStops) {
      made_.stopped = made_.stopped || (execution.stop && execution.stop());
      if (made_.stopped) return;
      const auto left = std::span(each).subspan(first);
      for_each(execution, std::min(kQuestionsBetweenStops, left.size()), [&](std::size_t i) {
        const auto& [question, sizings] = *left[i];
        const double rate = execution.rate_limit(question) / kMsPerS;
        for (Sizing* sizing : sizings) decide(*sizing, rate);
      });
    }
  }

  /// Whether there is nothing more to ask for it. Until its search has found something, it stays
  /// with what the closed form says.
  bool is_settled(Open& o) {
    auto& of = asked_[o.g * columns_.size() + o.column];
    const auto sizing_at = [&]() -> const Sizing* {
      const auto known = of.find(key_of(demand_of_each(o.s, o.column, o.search.replicas())));
      if (known == of.end()) return nullptr;
      const Sizing& sizing = known->second;
      return sizing.is_asked_for || sizing.refusal != Refusal::none ? &sizing : nullptr;
    };
    while (!o.search.is_found()) {
      const Sizing* sizing = sizing_at();
      if (sizing == nullptr) return made_.stopped;
      o.search.look(replicas_for(*sizing, model_, rows_[o.s].rate));
    }
    settled_[o.s * columns_.size() + o.column] = {o.search.replicas(), sizing_at()};
    return true;
  }

  void make_group(std::size_t g) {
    for (std::size_t i = groups_[g]; i < groups_[g + 1]; ++i)
      if (const Row& row = rows_[order_[i]]; row.refusal == Refusal::none && needs_nothing(row))
        by_server_[order_[i]] = {nothing(*row.server)};
    for (std::size_t column = 0; column < columns_.size(); ++column)
      if (columns_[column].role == Role::whole) make_column(g, column);
    if (made_.pools.empty()) return;
    each_loaded(g, [&](std::size_t s, std::size_t column, const Performance& performance) {
      if (columns_[column].role == Role::whole) return;
      Candidate c;
      if (fill_loaded(s, column, performance, c) == Refusal::none)
        made_.pools[s].push_back(priced(s, column, performance, c));
    });
  }

  void make_column(std::size_t g, std::size_t column) {
    const auto& [name, accelerator, place, role] = columns_[column];
    for (std::size_t i = groups_[g]; i < groups_[g + 1]; ++i) {
      const std::size_t s = order_[i];
      const Row& row = rows_[s];
      const Server& server = *row.server;
      Refusal& refusal = made_.refusals[s * system_.accelerators.size() + place];
      refusal = row.refusal == Refusal::none && needs_nothing(row) ? Refusal::idle : row.refusal;
      if (refusal != Refusal::none) continue;
      const auto performance = row.model->accelerators.find(*name);
      Candidate c;
      if (performance == row.model->accelerators.end())
        refusal = Refusal::no_performance;
      else if (keeps_another(server, *name))
        refusal = Refusal::kept;
      else if (row.rate == 0)
        c = idle_candidate(server, performance->second);
      else
        refusal = fill_loaded(s, column, performance->second, c);
      if (refusal == Refusal::none)
        by_server_[s].push_back(priced(s, column, performance->second, c));
    }
  }

  /// Why it is no candidate, where it is none.
  Refusal fill_loaded(std::size_t s, std::size_t column, const Performance& performance,
                      Candidate& c) const {
    const auto& [replicas, sizing] = settled_[s * columns_.size() + column];
    if (sizing->refusal != Refusal::none) return sizing->refusal;
    if (!(replicas <= kMostReplicas)) return Refusal::overloaded;
    const Row& row = rows_[s];
    const Demand demand = demand_of_each(s, column, replicas);
    const double rate = row.rate / replicas;
    c.replicas = static_cast<int>(replicas);
    c.batch = batch_for(*sizing, demand, performance, model_, rate);
    c.rate_per_s = sizing->rate * kMsPerS;
    c.binding = c.rate_binding = sizing->binding;
    c.is_rate_asked_for = sizing->is_asked_for;
    if (columns_[column].role == Role::whole && c.replicas == row.server->min_replicas &&
        c.replicas > std::ceil(row.rate / sizing->rate))
      c.binding = Binding::min_replicas;
    const Operation operation = operation_at(demand, performance, c.batch, rate, model_);
    if (columns_[column].role != Role::prefill) c.itl_ms = operation.itl_ms;
    if (columns_[column].role != Role::decode) c.ttft_ms = operation.ttft_ms;
    c.utilisation = operation.utilisation;
    return Refusal::none;
  }

  Candidate priced(std::size_t s, std::size_t column, const Performance& performance,
                   Candidate c) const {
    const auto& [name, accelerator, place, role] = columns_[column];
    const int each = std::max(1, performance.accelerators);
    c.accelerator = place;
    c.role = role;
    c.units_per_replica = each * accelerator->multiplicity;
    c.cost = accelerator->cost * each * c.replicas;
    c.watts = power_w(*accelerator, c.utilisation) * each * c.replicas;
    c.value = value_of(rows_[s].server->current, *name, c.replicas, c.cost, model_);
    return c;
  }

  static bool needs_nothing(const Row& row) {
    return row.rate == 0 && row.server->min_replicas == 0;
  }
  Candidate nothing(const Server& server) const {
    Candidate c;
    c.accelerator = Candidate::kNothing;
    c.value = value_of(server.current, "", 0, 0, model_);
    return c;
  }

  const System& system_;
  const QueueModel model_;
  Candidates& made_;
  std::vector<Row> rows_;
  std::vector<Column> columns_;
  std::vector<std::vector<Candidate>> by_server_;
  std::vector<std::size_t> order_, groups_;
  // By what a replica sees of the arrivals; groups × columns, row-major.
  std::vector<std::map<double, Sizing>> sizings_, asked_;
  struct Settled {
    double replicas = 0;
    const Sizing* sizing = nullptr;
  };
  std::vector<Settled> settled_;  // servers × columns, row-major
};

}  // namespace

std::string class_of(const Server& server) {
  return server.service_class.empty() ? "Free" : server.service_class;
}

Target target_of(const System& system, const Server& server) {
  const auto known = system.classes.find(class_of(server));
  if (known == system.classes.end()) return {};
  const auto target = known->second.targets.find(server.model);
  return target == known->second.targets.end() ? Target{} : target->second;
}

double rate_per_ms(const Load& load, const Target& target, QueueModel model) {
  const double rate = load.arrivals_per_min / kMsPerMin;
  const bool prompts_count = model == QueueModel::calibrated;
  if (rate == 0 || load.in_tokens + load.out_tokens == 0) return 0;
  if (load.out_tokens == 0) return prompts_count ? rate : 0;
  if (target.tps == 0) return rate;
  const double wanted = target.tps / load.out_tokens / 1000;
  return model == QueueModel::reference ? wanted : std::max(rate, wanted);
}

bool keeps_another(const Server& server, std::string_view accelerator) {
  return server.keep_accelerator && !server.current.accelerator.empty() &&
         std::ranges::find(parts_of(server.current), accelerator, &Allocation::accelerator) ==
             parts_of(server.current).end();
}

void for_each(const Execution& execution, std::size_t count,
              const std::function<void(std::size_t)>& body) {
  if (!execution.parallel_for) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  // Neighbours together, so that a call is worth its thread.
  const std::size_t blocks = (count + kServersAtOnce - 1) / kServersAtOnce;
  execution.parallel_for(blocks, [&](std::size_t block) {
    const std::size_t end = std::min(count, (block + 1) * kServersAtOnce);
    for (std::size_t i = block * kServersAtOnce; i < end; ++i) body(i);
  });
}

Candidates candidates(const System& system, QueueModel model, const Execution& execution) {
  Candidates made;
  made.model = model;
  for (const auto& [name, server] : system.servers) {
    made.servers.push_back(name);
    made.priority.push_back(priority_of(system, server));
  }
  std::map<std::string, std::uint32_t> types;
  for (const auto& [name, accelerator] : system.accelerators) types[accelerator.type];
  for (auto& [type, place] : types) {
    place = static_cast<std::uint32_t>(made.types.size());
    made.types.push_back(type);
  }
  for (const auto& [name, accelerator] : system.accelerators) {
    made.accelerators.push_back(name);
    made.type_of.push_back(types[accelerator.type]);
  }
  Maker(system, model, made).make(execution);
  return made;
}

}  // namespace berth::fleet
