#include "berth/run/flows/deliveries.h"

#include <algorithm>

#include "berth/base/units.h"
#include "berth/remote/transfer/elsewhere.h"
#include "berth/run/state/clusters.h"

namespace berth::run {
namespace {

/// So many places may hang before others wait for them.
constexpr std::size_t kOutputsAtOnce = 4;

Status gather_there(os::Env& there, const std::string& store, Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  BERTH_TRY(gather(cache, delivery));
  return cache.make_durable();
}

Result<bool> place_there(os::Env& there, const std::string& store, Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  PlacedOutputs placed(store);
  return place(there, cache, placed, delivery);
}

Status check_there(os::Env& there, const std::string& store, const Delivery& delivery) {
  BERTH_ASSIGN(auto cache, fileset::ObjectStore::open(there, store));
  PlacedOutputs placed(store);
  return check_places(there, cache, placed, delivery);
}

/// The plugin is loaded by the loop's thread.
void find_cloud(const FlowRun& run, Delivery& delivery) {
  const auto goes_to_s3 = [](const flow::TaskOutput& output) { return !output.url.empty(); };
  if (delivery.cloud != nullptr || std::ranges::none_of(delivery.spec.outputs, goes_to_s3)) return;
  const auto loaded = run.context.cloud != nullptr ? Result<const remote::Cloud*>(run.context.cloud)
                                                   : remote::load_cloud(run.env);
  if (loaded)
    delivery.cloud = *loaded;
  else
    delivery.no_cloud = loaded.error();
  delivery.progress = std::make_shared<remote::TransferProgress>();
}

std::string places_of(const Delivery& delivery) {
  std::vector<std::string> places;
  for (const auto& output : delivery.spec.outputs) places.push_back(place_of(delivery, output));
  return list_of(std::move(places));
}

/// A folder is replaced whole, so all that goes with it must be what an earlier run of this task
/// wrote there. exists: names the first file that is not.
Status judge(const FlowRun& run, Delivery& delivery) {
  const std::size_t output = delivery.placed;
  const auto there = std::exchange(delivery.there, std::nullopt);
  auto strange = without(there->entries, delivery.outputs[output]);
  delivery.ours = true;
  auto& records = *run.context.store;
  BERTH_ASSIGN(const auto runs, records.runs());
  for (auto one = runs.rbegin(); one != runs.rend() && !strange.empty(); ++one) {
    if (one->kind != "flow" || one->directory != delivery.folder) continue;
    const auto task = records.find_task(one->id, delivery.spec.name);
    if (!task) continue;
    const auto result = records.result(task->digest);
    if (!result) continue;
    const auto outputs = parse_outputs(result->outputs);
    if (outputs && output < outputs->size()) strange = without(strange, (*outputs)[output]);
  }
  if (strange.empty()) return {};
  const auto& declared = delivery.spec.outputs[output];
  return fail(ErrorKind::exists,
              "out.{}: {}/{}: not written by this step; move it away, or it would be lost",
              declared.name, place_in(delivery.folder, declared.path), strange.front().path);
}

}  // namespace

Status place_now(FlowRun& run, Delivery& delivery) {
  find_cloud(run, delivery);
  for (;;) {
    BERTH_ASSIGN(const bool placed, place(run.env, run.cache, run.placed, delivery));
    if (placed) return {};
    BERTH_TRY(judge(run, delivery));
  }
}

Deliveries::Deliveries(FlowRun& run, std::function<bool(TaskNumber, Token)> is_last)
    : run_(run), is_last_(std::move(is_last)), threads_(run.env, kOutputsAtOnce) {}

Status Deliveries::place(Delivery delivery, Then then) {
  find_cloud(run_, delivery);
  std::string what = "copying " + places_of(delivery);
  OtherThreads::More more;
  if (delivery.progress)
    more = [progress = delivery.progress] { return remote::to_text(*progress); };
  return threads_.start(
      std::move(what),
      [this, store = run_.cache.directory(), delivery = std::move(delivery),
       then = std::move(then)](os::Env& there) mutable -> os::BackgroundThreads::Then {
        auto placed = place_there(there, store, delivery);
        return [this, placed = std::move(placed), delivery = std::move(delivery),
                then = std::move(then)]() mutable {
          Status status;
          if (!placed) {
            status = std::unexpected(std::move(placed).error());
          } else if (!*placed) {
            status = judge(run_, delivery);
            if (status) {
              BERTH_ASSERT(place(std::move(delivery), std::move(then)));  // a thread is there
              return;
            }
          }
          then(std::move(delivery), std::move(status));
        };
      },
      std::move(more));
}

Status Deliveries::check(Delivery delivery, Then then) {
  std::string what = "checking " + places_of(delivery);
  return threads_.start(
      std::move(what),
      [store = run_.cache.directory(), delivery = std::move(delivery),
       then = std::move(then)](os::Env& there) mutable -> os::BackgroundThreads::Then {
        return [status = check_there(there, store, delivery), delivery = std::move(delivery),
                then = std::move(then)]() mutable { then(std::move(delivery), std::move(status)); };
      });
}

Status Deliveries::deliver(Attempt attempt, Delivery delivery) {
  std::string what = "reading the outputs of " + places_of(delivery);
  return threads_.start(
      std::move(what),
      [this, store = run_.cache.directory(), attempt = std::move(attempt),
       delivery = std::move(delivery)](os::Env& there) mutable -> os::BackgroundThreads::Then {
        auto status = gather_there(there, store, delivery);
        return [this, attempt = std::move(attempt), delivery = std::move(delivery),
                status = std::move(status)]() mutable {
          // What was opened there is closed here.
          for (auto& hold : delivery.holds) hold = std::move(hold).in(run_.env);
          gathered(std::move(attempt), std::move(delivery), std::move(status));
        };
      });
}

void Deliveries::gathered(Attempt attempt, Delivery delivery, Status status) {
  if (!is_last(attempt)) return;  // it was given up meanwhile
  if (!status) {
    delivered_.push_back({std::move(attempt), std::move(delivery), std::move(status)});
    return;
  }
  const auto [task, token, label] = attempt;
  Placing placing{std::move(attempt), delivery.outputs, places_of(delivery), run_.env.now()};
  placing.waits = std::move(delivery);
  placing_.insert_or_assign(token.value, std::move(placing));
  place_waiting(task);
}

bool Deliveries::is_placing(TaskNumber task) const {
  return std::ranges::any_of(placing_,
                             [&](const auto& each) { return each.second.attempt.task == task; });
}

/// What the task's last attempt wrote, once nothing of it is on its way any more.
void Deliveries::place_waiting(TaskNumber task) {
  std::erase_if(placing_, [&](const auto& each) {
    const auto& placing = each.second;
    return placing.attempt.task == task && placing.waits && !is_last(placing.attempt);
  });
  auto next = placing_.end();
  for (auto each = placing_.begin(); each != placing_.end(); ++each) {
    if (each->second.attempt.task != task) continue;
    if (!each->second.waits) return;
    next = each;
  }
  if (next == placing_.end()) return;
  Delivery delivery = *std::exchange(next->second.waits, std::nullopt);
  BERTH_ASSERT(
      place(std::move(delivery), [this, task, token = next->first](Delivery placed, Status status) {
        // Else a stop waited for it no longer.
        if (auto known = placing_.extract(token); known && is_last(known.mapped().attempt))
          delivered_.push_back(
              {std::move(known.mapped().attempt), std::move(placed), std::move(status)});
        place_waiting(task);
      }));
}

std::vector<Deliveries::Delivered> Deliveries::turn() {
  threads_.turn();
  return std::exchange(delivered_, {});
}

std::vector<Deliveries::Left> Deliveries::leave(Mono begun_before) {
  std::vector<Left> left;
  for (auto each = placing_.begin(); each != placing_.end();) {
    Placing& placing = each->second;
    if (placing.since > begun_before || !is_last(placing.attempt)) {
      ++each;
      continue;
    }
    auto& one = left.emplace_back(Left{std::move(placing.attempt), std::move(placing.outputs)});
    if (placing.waits) one.holds = std::move(placing.waits->holds);
    one.note = fmt::format("{}: it took more than {} to deliver {}; a resume will deliver it",
                           one.attempt.label, format_duration(run_.env.now() - placing.since),
                           placing.places);
    each = placing_.erase(each);
  }
  return left;
}

}  // namespace berth::run
