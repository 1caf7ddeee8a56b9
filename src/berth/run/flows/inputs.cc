#include "berth/run/flows/inputs.h"

#include <algorithm>
#include <array>

#include "berth/remote/transfer/elsewhere.h"

namespace berth::run {
namespace {

constexpr std::size_t kInputsHeld = 8;
/// So many may hang before others wait for them.
constexpr std::size_t kReadsAtOnce = 8;
constexpr std::size_t kFetchesAtOnce = 4;

}  // namespace

Inputs::Inputs(os::Env& env, fileset::ObjectStore& cache, std::string folder,
               const remote::Cloud* cloud)
    : env_(env),
      cache_(cache),
      folder_(std::move(folder)),
      cloud_(cloud),
      threads_(env, kReadsAtOnce),
      fetches_(env, kFetchesAtOnce) {}

Result<bool> Inputs::fill(PreparedTask& task, bool later) {
  const std::string* last = nullptr;
  for (const auto& input : task.spec.inputs) {
    const std::string& path = input.world;
    if (!later || path.empty() || known_.contains(path) || failed_.contains(path)) continue;
    BERTH_TRY(read_later(path));
    last = &path;
  }
  if (last != nullptr) {
    waiting_.at(*last).push_back(task.index);
    return false;
  }
  task.inputs.clear();  // of a try that found no room
  for (const auto& input : task.spec.inputs) {
    if (input.world.empty()) {
      task.inputs.push_back(input.content);
    } else {
      BERTH_ASSIGN(task.inputs.emplace_back(), get(input.world));
    }
  }
  BERTH_TRY(hold(task));
  return true;
}

Status Inputs::hold(PreparedTask& task) {
  const fileset::Fileset all = all_of(task.inputs);
  if (all.entries.empty()) return {};
  auto hold = cache_.hold(all);
  if (!hold && hold.error().kind == ErrorKind::not_found) {
    std::vector<fileset::Hold> meanwhile;
    for (std::size_t i = 0; i < task.inputs.size(); ++i) {
      const std::string& world = task.spec.inputs[i].world;
      auto one = cache_.hold(task.inputs[i]);
      if (one)
        meanwhile.push_back(*std::move(one));
      else if (one.error().kind == ErrorKind::not_found && !world.empty())
        BERTH_TRY(restore(world));
    }
    hold = cache_.hold(all);
  }
  if (!hold) return std::unexpected(hold.error());
  task.hold = *std::move(hold);
  return {};
}

Status Inputs::publish(PreparedTask& task, const std::string& directory) {
  BERTH_TRY(env_.make_directory(directory, 0700));
  for (std::size_t i = 0; i < task.spec.inputs.size(); ++i) {
    const std::string to = directory + "/" + task.spec.inputs[i].place;
    BERTH_TRY(env_.make_directory(parent_of(to), 0700));
    auto placed = cache_.publish(task.inputs[i], to, fileset::Publish::links);
    if (!placed && placed.error().kind == ErrorKind::not_found) {  // another task spoiled it
      BERTH_TRY(hold(task));
      placed = cache_.publish(task.inputs[i], to, fileset::Publish::links);
    }
    BERTH_TRY(placed);
  }
  return {};
}

Result<fileset::Fileset> Inputs::get(const std::string& path) {
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  if (!failed_.contains(path)) BERTH_TRY(read_now(path));
  if (auto failed = failed_.extract(path)) return std::unexpected(std::move(failed.mapped()));
  return known_.at(path);
}

Status Inputs::restore(const std::string& path) {
  const auto known = known_.extract(path);
  BERTH_ASSIGN(const auto now, get(path));
  if (!known || known.mapped() == now) return {};
  known_.insert_or_assign(path, known.mapped());
  return fail(ErrorKind::stale, "{}: it has changed since this run read it", path);
}

/// On another thread all the same, while nothing else is waited for here.
Status Inputs::read_now(const std::string& path) {
  cache_.release_lock();  // it may take long
  if (!alone_) alone_ = env_.background_threads();
  BERTH_ASSIGN(Job job, this->job(path));
  BERTH_TRY(alone_->start([this, path, read = std::move(job.read)](os::Env& there) mutable {
    return [this, path, got = read(there)]() mutable { take(path, std::move(got)); };
  }));
  while (alone_->busy()) {
    if (env_.stop_signals() > 0) return fail(ErrorKind::interrupted, "stopped in {}", job.what);
    std::array<os::Watch, 1> watches{os::Watch{.fd = alone_->ready()}};
    BERTH_TRY(env_.wait(watches, std::nullopt));
    alone_->turn();
  }
  return {};
}

Status Inputs::read_later(const std::string& path) {
  if (waiting_.contains(path)) return {};
  BERTH_ASSIGN(Job job, this->job(path));
  waiting_.try_emplace(path);
  auto started =
      (is_url(path) ? fetches_ : threads_)
          .start(
              job.what,
              [this, path,
               read = std::move(job.read)](os::Env& there) mutable -> os::BackgroundThreads::Then {
                return [this, path, got = read(there)]() mutable {
                  take(path, std::move(got));
                  const auto waited = waiting_.extract(path);
                  ready_.insert(ready_.end(), waited.mapped().rbegin(), waited.mapped().rend());
                };
              },
              job.more);
  if (!started) waiting_.erase(path);
  return started;
}

Result<Inputs::Job> Inputs::job(const std::string& path) {
  if (is_url(path)) return fetch_job(path);
  const std::string place = place_in(folder_, path);
  return Job{[place, directory = cache_.directory()](os::Env& there) -> Result<Reading> {
               BERTH_ASSIGN(auto store, fileset::ObjectStore::open(there, directory));
               BERTH_ASSIGN(auto captured, store.capture(place, fileset::Expect::stored));
               // What is small becomes durable with others.
               if (takes_long(captured.fileset)) BERTH_TRY(store.make_durable());
               return Reading{std::move(store), std::move(captured)};
             },
             "reading " + place};
}

Result<Inputs::Job> Inputs::fetch_job(const std::string& text) {
  BERTH_ASSIGN(const Url url, parse_url(text));
  if (cloud_ == nullptr) {
    BERTH_ASSIGN(cloud_, remote::load_cloud(env_));
  }
  auto progress = std::make_shared<remote::TransferProgress>();
  return Job{[url, progress, &cloud = *cloud_,
              directory = cache_.directory()](os::Env& there) -> Result<Reading> {
               BERTH_ASSIGN(auto store, fileset::ObjectStore::open(there, directory));
               remote::Elsewhere elsewhere(there, cloud);
               BERTH_ASSIGN(auto captured, elsewhere.fetch(store, url, *progress));
               if (takes_long(captured.fileset)) BERTH_TRY(store.make_durable());
               return Reading{std::move(store), std::move(captured)};
             },
             "downloading " + shown(text), [progress] { return remote::to_text(*progress); }};
}

std::optional<Underway> Inputs::oldest() const {
  auto read = threads_.oldest(), fetched = fetches_.oldest();
  return read && (!fetched || read->since <= fetched->since) ? read : fetched;
}

void Inputs::take(const std::string& path, Result<Reading> read) {
  if (!read) {
    failed_.emplace(path, std::move(read).error());
    return;
  }
  cache_.adopt(std::move(read->store));
  latest_.push_front(std::move(read->captured.hold).in(env_));
  if (latest_.size() > kInputsHeld) latest_.pop_back();
  known_.emplace(path, std::move(read->captured.fileset));
}

std::vector<flow::TaskIndex> Inputs::turn() {
  threads_.turn();
  fetches_.turn();
  return std::exchange(ready_, {});
}

}  // namespace berth::run
