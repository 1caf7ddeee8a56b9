// The files of a flow's tasks that take long: read, copied and hashed beside the loop.
#include <algorithm>

#include "berth/base/units.h"
#include "berth/run/elsewhere.h"
#include "berth/run/flow_tasks.h"

namespace berth::run {
namespace {

Status gather_there(os::Env& there, const std::string& store, Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  BERTH_TRY(gather(cache, delivery));
  return cache.make_durable();
}

Result<bool> place_there(os::Env& there, const std::string& store, Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  return place(there, cache, delivery);
}

}  // namespace

std::string FlowTasks::places_of(const flow::TaskSpec& spec) const {
  std::vector<std::string> places;
  for (const auto& output : spec.outputs) places.push_back(inputs_.place(output.path));
  return list_of(std::move(places));
}

/// Out of the task's directory into the object store, for good.
Status FlowTasks::gather_aside(Delivery delivery, Delivered then) {
  std::string what = "taking in what is for " + places_of(delivery.spec);
  return outputs_.start(std::move(what),
                        [this, store = cache_.directory(), delivery = std::move(delivery),
                         then = std::move(then)](os::Env& there) mutable -> os::Aside::Then {
                          auto status = gather_there(there, store, delivery);
                          return [this, status = std::move(status), delivery = std::move(delivery),
                                  then = std::move(then)]() mutable {
                            // What was opened there is closed here.
                            for (auto& hold : delivery.holds) hold = std::move(hold).in(env_);
                            then(std::move(delivery), std::move(status));
                          };
                        });
}

Status FlowTasks::place_aside(Delivery delivery, Delivered then) {
  std::string what = "bringing " + places_of(delivery.spec);
  return outputs_.start(
      std::move(what),
      [this, store = cache_.directory(), delivery = std::move(delivery),
       then = std::move(then)](os::Env& there) mutable -> os::Aside::Then {
        auto placed = place_there(there, store, delivery);
        return [this, placed = std::move(placed), delivery = std::move(delivery),
                then = std::move(then)]() mutable {
          Status status;
          if (!placed) {
            status = std::unexpected(std::move(placed).error());
          } else if (!*placed) {
            status = judge(delivery);
            if (status) {
              BERTH_ASSERT(place_aside(std::move(delivery), std::move(then)));  // a thread is there
              return;
            }
          }
          then(std::move(delivery), std::move(status));
        };
      });
}

/// What a task wrote, in two parts: once it is in the object store, nothing of it can be lost.
Status FlowTasks::deliver_aside(Token token, Placing placing, Delivery delivery) {
  return gather_aside(std::move(delivery), [this, token, placing = std::move(placing)](
                                               Delivery gathered, Status status) mutable {
    if (!status) return delivered(token, placing, gathered, std::move(status));
    if (!is_last(placing.task, token)) return;
    const TaskNumber task = placing.task;
    placing.outputs = gathered.outputs;
    placing.since = env_.now();
    placing.waits = std::move(gathered);
    placing_.insert_or_assign(token.value, std::move(placing));
    place_waiting(task);
  });
}

/// false: it was given up meanwhile.
bool FlowTasks::is_last(TaskNumber task, Token token) const {
  const auto now = prepared_.find(task.value);
  return now != prepared_.end() && now->second.token == token;
}

bool FlowTasks::is_placing(TaskNumber task) const {
  return std::ranges::any_of(placing_, [&](const auto& each) { return each.second.task == task; });
}

/// What the task's last attempt wrote, once nothing of it is on its way any more.
void FlowTasks::place_waiting(TaskNumber task) {
  std::erase_if(placing_, [&](const auto& each) {
    const auto& [token, placing] = each;
    return placing.task == task && placing.waits && !is_last(task, {token});
  });
  auto next = placing_.end();
  for (auto each = placing_.begin(); each != placing_.end(); ++each) {
    if (each->second.task != task) continue;
    if (!each->second.waits) return;
    next = each;
  }
  if (next == placing_.end()) return;
  Delivery delivery = *std::exchange(next->second.waits, std::nullopt);
  BERTH_ASSERT(place_aside(
      std::move(delivery), [this, task, token = Token{next->first}](Delivery placed, Status so) {
        if (auto known = placing_.extract(token.value))  // else a stop waited for it no longer
          delivered(token, known.mapped(), placed, std::move(so));
        place_waiting(task);
      }));
}

void FlowTasks::delivered(Token token, const Placing& placing, Delivery& delivery, Status status) {
  if (!is_last(placing.task, token)) return;
  Finished& finished = finished_.emplace_back(Finished{.token = token});
  finished.status = conclude(prepared_.at(placing.task.value), placing.label, delivery,
                             std::move(status), finished.changes);
}

/// It is done, for what it wrote is kept: a resume brings that to its places, as it does for one
/// that was killed there.
std::vector<Finished> FlowTasks::leave(Mono begun_before) {
  std::vector<Finished> left;
  for (auto& [token, placing] : placing_) {
    if (placing.since > begun_before || !is_last(placing.task, {token})) continue;
    Prepared& prepared = prepared_.at(placing.task.value);
    if (placing.waits) std::ranges::move(placing.waits->holds, std::back_inserter(closing_));
    Finished& finished = left.emplace_back(Finished{.token = {token}});
    finished.note =
        fmt::format("{}: it took more than {} to bring {}; that is left to a resume", placing.label,
                    format_duration(env_.now() - placing.since), places_of(prepared.spec));
    keep(prepared, placing.label, std::move(placing.outputs), finished.changes);
    left_ = true;
  }
  for (const auto& finished : left) placing_.erase(finished.token.value);
  return left;
}

/// To their places from the store, and `then`; at once, or when next() comes to it again.
Status FlowTasks::bring(flow::TaskIndex task, Delivery delivery, Brought then, Next& next) {
  if (!takes_long(env_, delivery)) {
    const auto placed = place_here(delivery);
    return then(delivery, placed, next);
  }
  BERTH_TRY(place_aside(std::move(delivery), [this, task, then = std::move(then)](
                                                 Delivery brought, Status placed) mutable {
    came_.push_back(
        {task, [then = std::move(then), brought = std::move(brought), placed = std::move(placed)](
                   Next& following) mutable { return then(brought, placed, following); }});
  }));
  count_unstarted(task, 1);
  return {};
}

/// Its tasks are looked at again when it is there.
Status FlowTasks::read_aside(const std::string& world) {
  if (!reading_.try_emplace(world).second) return {};
  auto started = reads_.start(
      "reading " + inputs_.place(world),
      [this, world, read = inputs_.reader(world)](os::Env& there) mutable -> os::Aside::Then {
        return [this, world, got = read(there)]() mutable {
          inputs_.take(world, std::move(got));
          auto waited = reading_.extract(world).mapped();
          std::ranges::reverse(waited);
          for (const auto each : waited) {
            count_unstarted(each, -1);
            queue_of(each).push_front(each);
          }
        };
      });
  if (!started) reading_.erase(world);
  return started;
}

void FlowTasks::watch(std::vector<os::Watch>& watches) const {
  reads_.watch(watches);
  outputs_.watch(watches);
}

std::vector<Finished> FlowTasks::turn() {
  reads_.turn();
  outputs_.turn();
  return std::exchange(finished_, {});
}

bool FlowTasks::busy() const {
  return reads_.busy() || outputs_.busy() || !came_.empty() || !finished_.empty();
}

}  // namespace berth::run
