// The files of a flow's tasks that take long: read, copied and hashed beside the loop.
#include <algorithm>

#include "berth/os/aside.h"
#include "berth/run/flow_tasks.h"

namespace berth::run {
namespace {

Result<bool> deliver_there(os::Env& there, const std::string& store, Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  Status status;
  if (!delivery.directory.empty() && !delivery.gathered) status = gather(cache, delivery);
  if (status) status = cache.make_durable();
  BERTH_TRY(status);
  return place(there, cache, delivery);
}

}  // namespace

Status FlowTasks::deliver_aside(Delivery delivery, Delivered then) {
  return aside_->start([this, store = cache_.directory(), delivery = std::move(delivery),
                        then = std::move(then)](os::Env& there) mutable -> os::Aside::Then {
    auto placed = deliver_there(there, store, delivery);
    return [this, placed = std::move(placed), delivery = std::move(delivery),
            then = std::move(then)]() mutable {
      // What was opened there is closed here.
      for (auto& hold : delivery.holds) hold = std::move(hold).in(env_);
      Status status;
      if (!placed) {
        status = std::unexpected(std::move(placed).error());
      } else if (!*placed) {
        status = judge(delivery);
        // The thread is there: nothing is left that could keep it from starting.
        if (status) {
          BERTH_ASSERT(deliver_aside(std::move(delivery), std::move(then)));
          return;
        }
      }
      then(delivery, std::move(status));
    };
  });
}

/// To their places from the store, and `then`; at once, or when next() comes to it again.
Status FlowTasks::bring(flow::TaskIndex task, Delivery delivery, Brought then, Next& next) {
  if (!takes_long(env_, delivery)) {
    const auto placed = place_here(delivery);
    return then(delivery, placed, next);
  }
  BERTH_TRY(deliver_aside(std::move(delivery), [this, task, then = std::move(then)](
                                                   Delivery& brought, Status placed) mutable {
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
  auto started = aside_->start(
      [this, world, read = inputs_.reader(world)](os::Env& there) mutable -> os::Aside::Then {
        return [this, world, got = read(there)]() mutable {
          inputs_.take(world, std::move(got));
          read_in_turn_.pop_front();
          auto waited = reading_.extract(world).mapped();
          std::ranges::reverse(waited);
          for (const auto each : waited) {
            count_unstarted(each, -1);
            queue_of(each).push_front(each);
          }
        };
      });
  if (started)
    read_in_turn_.push_back(inputs_.place(world));
  else
    reading_.erase(world);
  return started;
}

std::string FlowTasks::reading() const {
  return read_in_turn_.empty() ? "" : read_in_turn_.front();
}

void FlowTasks::watch(std::vector<os::Watch>& watches) const {
  if (aside_->busy()) watches.push_back({.fd = aside_->ready()});
}

std::vector<Finished> FlowTasks::turn() {
  if (aside_->busy()) aside_->turn();
  return std::exchange(finished_, {});
}

bool FlowTasks::busy() const {
  return aside_->busy() || !came_.empty() || !finished_.empty();
}

}  // namespace berth::run
