#include "berth/cluster/tracing.h"

#include <algorithm>
#include <map>

#include "berth/base/json_writer.h"
#include "berth/base/text.h"
#include "berth/os/log.h"

namespace berth::cluster {
namespace {

// Groups of the trace, of each cluster.
constexpr std::int64_t kCalls = 1;
constexpr std::int64_t kAllocs = 2;

std::int64_t to_us(Wall time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

/// Ends the object with the labels.
std::string finish(JsonWriter& json, const Labels& labels) {
  json.key("labels").object();
  for (const auto& [name, value] : labels) json.add(name, value);
  return json.end().end().take();
}

std::string hex(AllocId id) {
  return fmt::format("{:x}", id.value);
}

class TracingCluster final : public Cluster {
 public:
  TracingCluster(os::Env& env, std::unique_ptr<Cluster> inner, const std::string& file,
                 std::string_view name, std::int64_t nth)
      : env_(env), inner_(std::move(inner)), calls_(kCalls + 2 * nth), allocs_(kAllocs + 2 * nth) {
    const bool is_new = !env_.status(file);
    if (auto opened = env_.open_append(file, 0600)) file_ = *std::move(opened);
    if (is_new) put("[\n");
    const std::string of = name.empty() ? "" : fmt::format(" of {}", name);
    put(trace_name("calls" + of, calls_, {}) + trace_name("allocs" + of, allocs_, {}));
  }
  ~TracingCluster() override {
    for (const auto& [id, life] : lives_) end(id, life);
  }

  Result<std::vector<Offer>> offers() override {
    return traced("offers", "{}", [&] { return inner_->offers(); });
  }
  Result<Alloc> accept(const Offer& offer, const std::optional<machine::Request>& part,
                       const Labels& labels) override {
    JsonWriter json;
    json.object().add("machine", offer.machine);
    json.key("part").raw(part ? machine::to_json(*part) : "null");
    const std::string what = finish(json, labels);
    return begun(traced("accept", what, [&] { return inner_->accept(offer, part, labels); }));
  }
  Result<Alloc> allocate(const Wish& wish) override {
    JsonWriter json;
    json.object().key("min").raw(to_json(wish.requirements.min));
    json.add("width", wish.requirements.width);
    const std::string what = finish(json, wish.labels);
    return begun(traced("allocate", what, [&] { return inner_->allocate(wish); }));
  }
  Result<std::optional<Mono>> keepalive(AllocId id) override {
    return traced("keepalive", of(id), [&] { return inner_->keepalive(id); });
  }
  Result<Alloc> inspect(AllocId id) override {
    return traced("inspect", of(id), [&] { return inner_->inspect(id); });
  }
  Status free(AllocId id) override {
    auto status = traced("free", of(id), [&] { return inner_->free(id); });
    if (const auto life = lives_.find(id); status && life != lives_.end()) {
      end(id, life->second);
      lives_.erase(life);
    }
    return status;
  }
  Result<bool> others_wait(std::int64_t priority) override { return inner_->others_wait(priority); }
  Mono retry_at() override { return inner_->retry_at(); }
  void on_change(std::function<void()> wake) override { inner_->on_change(std::move(wake)); }
  void stop_waiting() override { inner_->stop_waiting(); }

 private:
  struct Life {
    Wall since;
    std::int64_t lane = 0;
    std::string name, arguments;
  };

  static std::string of(AllocId id) {
    return JsonWriter().object().add("alloc", hex(id)).end().take();
  }

  template <class Call>
  auto traced(const char* name, const std::string& what, Call call) -> decltype(call()) {
    const Wall begin = env_.wall();
    auto answer = call();
    const std::string outcome = json_quote(answer ? "ok" : answer.error().message);
    // A wish that is refused again for the same reason is no news.
    if (!answer && outcome == last_refusal_) return answer;
    last_refusal_ = answer ? "" : outcome;
    os::log_event(env_, std::string("cluster.") + name, {{"of", what}, {"outcome", outcome}});
    JsonWriter json;
    json.object().key("of").raw(what).key("outcome").raw(outcome).end();
    put(trace_event(name, calls_, 0, begin, env_.wall(), json.take()));
    return answer;
  }

  Result<Alloc> begun(Result<Alloc> alloc) {
    if (!alloc) return alloc;
    std::int64_t lane = 0;  // the first row that is not in use
    const auto taken = [&](const auto& life) { return life.second.lane == lane; };
    while (std::ranges::any_of(lives_, taken)) ++lane;
    JsonWriter json;
    json.object().add("alloc", hex(alloc->id)).key("block").raw(machine::to_json(alloc->block));
    lives_[alloc->id] = {env_.wall(), lane,
                         alloc->machine + ": " + to_string(alloc->block.resources),
                         finish(json, alloc->labels)};
    return alloc;
  }

  void end(AllocId, const Life& life) {
    put(trace_event(life.name, allocs_, life.lane, life.since, env_.wall(), life.arguments));
  }

  void put(const std::string& text) {
    if (file_) (void)env_.write_all(file_, text);
  }

  os::Env& env_;
  std::unique_ptr<Cluster> inner_;
  const std::int64_t calls_, allocs_;
  os::Fd file_;
  std::map<AllocId, Life> lives_;
  std::string last_refusal_;
};

}  // namespace

std::string trace_event(std::string_view name, std::int64_t group, std::int64_t lane, Wall begin,
                        Wall end, std::string_view arguments) {
  JsonWriter json;
  json.object().add("name", name).add("ph", "X").add("pid", group).add("tid", lane);
  json.add("ts", to_us(begin)).add("dur", std::max<std::int64_t>(to_us(end) - to_us(begin), 0));
  return json.key("args").raw(arguments).end().take() + ",\n";
}

std::string trace_name(std::string_view name, std::int64_t group,
                       std::optional<std::int64_t> lane) {
  JsonWriter json;
  json.object().add("name", lane ? "thread_name" : "process_name").add("ph", "M");
  json.add("pid", group).add("tid", lane.value_or(0));
  return json.key("args").object().add("name", name).end().end().take() + ",\n";
}

std::unique_ptr<Cluster> tracing(os::Env& env, std::unique_ptr<Cluster> inner,
                                 const std::string& file, std::string_view name, std::int64_t nth) {
  return std::make_unique<TracingCluster>(env, std::move(inner), file, name, nth);
}

}  // namespace berth::cluster
