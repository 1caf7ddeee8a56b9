#include "berth/remote/ssh/ssh.h"

#include <algorithm>

#include "berth/base/text.h"
#include "berth/base/units.h"

namespace berth::remote {
namespace {

bool is_safe(std::string_view name) {
  constexpr std::string_view kOthers = "._-:%";  // of addresses with a zone, too
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

/// Of several hosts, why they have nothing to offer.
struct Refusals {
  std::string text;
  bool busy = false, retryable = false;

  void add(const Error& error) {
    text += (text.empty() ? "" : "; ") + error.message;
    busy = busy || error.kind == ErrorKind::busy;
    retryable = retryable || berth::retryable(error.kind);
  }
  /// As good as the best of them.
  ErrorKind kind() const {
    if (busy) return ErrorKind::busy;
    return retryable ? ErrorKind::io : ErrorKind::denied;
  }
};

class HostCluster final : public RemoteCluster {
 public:
  HostCluster(os::Env& env, std::vector<std::unique_ptr<Host>> hosts)
      : env_(env), hosts_(std::move(hosts)), next_(env.now()) {
    for (const auto& host : hosts_)
      host->on_change([this] {
        next_ = env_.now();
        changed();
      });
  }

  Result<std::vector<cluster::Offer>> offers() override {
    std::vector<cluster::Offer> all;
    Refusals refusals;
    for (const auto& host : hosts_) {
      auto some = host->offers();
      if (some)
        std::ranges::move(*some, std::back_inserter(all));
      else
        refusals.add(some.error());
    }
    if (all.empty()) return fail(refusals.kind(), "{}", refusals.text);
    return all;
  }

  Result<cluster::Alloc> accept(const cluster::Offer& offer,
                                const std::optional<machine::Request>& part,
                                const cluster::Labels& labels) override {
    const auto host =
        std::ranges::find(hosts_, offer.machine, [](const auto& each) { return each->name(); });
    if (host == hosts_.end()) return fail(ErrorKind::stale, "{}: no such host", offer.machine);
    return own(**host, (*host)->accept(offer, part, labels));
  }

  /// One host is asked at a time; what it answers decides who is asked next. What was asked for one
  /// wish is left to it for a while.
  Result<cluster::Alloc> allocate(const cluster::Wish& wish) override {
    const bool same = wish.requirements.min == wished_.requirements.min &&
                      wish.selection == wished_.selection && wish.avoid == wished_.avoid;
    if (asking_ && !same) {
      Host& host = *hosts_[*asking_];
      next_ = host.retry_at();
      if (env_.now() < asked_at_ + kAnswerTimeout)
        return fail(ErrorKind::busy, "{}: waiting for its answer", host.name());
      asking_.reset();
    }
    if (!asking_) BERTH_TRY(choose(wish));
    Host& host = *hosts_[*asking_];
    auto alloc = host.allocate(part_);
    next_ = host.retry_at();
    const bool waits =
        !alloc && alloc.error().kind == ErrorKind::busy && host.asking() && !host.failure();
    if (!waits) asking_.reset();
    if (!alloc && alloc.error().kind == ErrorKind::impossible) alloc.error().kind = ErrorKind::busy;
    return own(host, std::move(alloc));
  }

  Mono retry_at() override { return next_; }
  Result<std::optional<Mono>> keepalive(cluster::AllocId id) override {
    BERTH_ASSIGN(Host * host, of(id));
    return host->keepalive(id);
  }
  Result<cluster::Alloc> inspect(cluster::AllocId id) override {
    BERTH_ASSIGN(Host * host, of(id));
    return host->inspect(id);
  }
  Result<LeaseDirectory> lease_directory(cluster::AllocId id) override {
    BERTH_ASSIGN(Host * host, of(id));
    return host->lease_directory(id);
  }
  Status free(cluster::AllocId id) override {
    BERTH_ASSIGN(Host * host, of(id));
    owners_.erase(id);
    return host->free(id);
  }

 private:
  static constexpr Duration kAnswerTimeout = std::chrono::seconds(10);

  Result<Host*> of(cluster::AllocId id) {
    const auto owner = owners_.find(id);
    if (owner == owners_.end())
      return fail(ErrorKind::stale, "no allocation {:x} of this process", id.value);
    return owner->second;
  }
  Result<cluster::Alloc> own(Host& host, Result<cluster::Alloc> alloc) {
    if (alloc) owners_.emplace(alloc->id, &host);
    return alloc;
  }

  /// The host that it fits closest, and how much of it. impossible: it fits none, and all have been
  /// heard.
  Status choose(const cluster::Wish& wish) {
    std::vector<cluster::Offer> offers;
    std::vector<std::size_t> from;
    Refusals refusals;
    next_ = env_.now() + std::chrono::seconds(2);
    std::size_t avoided = 0;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      if (std::ranges::find(wish.avoid, hosts_[i]->name()) != wish.avoid.end()) {
        ++avoided;
        continue;
      }
      auto some = hosts_[i]->offers();
      if (!some) {
        next_ = std::min(next_, hosts_[i]->retry_at());
        refusals.add(some.error());
        continue;
      }
      offers.push_back(std::move(some->front()));
      from.push_back(i);
    }
    if (avoided == hosts_.size())
      return fail(ErrorKind::impossible, "the cluster has no other hosts than {}",
                  berth::join(wish.avoid, ", "));
    if (offers.empty()) return fail(refusals.kind(), "{}", refusals.text);
    auto choice = cluster::closest(offers, wish);
    if (choice) {
      wished_ = part_ = wish;
      part_.requirements = {part_of(offers[choice->offer], choice->part, wish.requirements.min), 1};
      asked_at_ = env_.now();
      asking_ = from[choice->offer];
      return {};
    }
    // It may fit a host that has not answered, unless that never will.
    const bool undecided = refusals.busy || refusals.retryable;
    if (undecided && choice.error().kind == ErrorKind::impossible)
      choice.error().kind = refusals.kind();
    if (!refusals.text.empty()) choice.error().message += "; " + refusals.text;
    return std::unexpected(choice.error());
  }

  os::Env& env_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<cluster::AllocId, Host*> owners_;
  std::optional<std::size_t> asking_;
  cluster::Wish wished_, part_;  // what was wished, and what is asked for it
  Mono asked_at_{}, next_;
};

}  // namespace

Result<SshHost> parse_ssh_host(std::string_view line) {
  SshHost host;
  auto rest = trim(line);
  const auto blank = std::min(rest.find_first_of(" \t"), rest.size());
  host.key = trim(rest.substr(blank));
  rest = rest.substr(0, blank);
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
    host.user = rest.substr(0, at);
    rest = rest.substr(at + 1);
    if (!is_safe(host.user))
      return fail(ErrorKind::invalid, "'{}': expected a user before the @", clip(line));
  }
  std::string_view port;
  const auto bracket = rest.starts_with('[') ? rest.find(']') : std::string_view::npos;
  if (bracket != std::string_view::npos) {
    host.host = rest.substr(1, bracket - 1);
    port = rest.substr(bracket + 1);
    if (!port.empty() && port.front() != ':')
      return fail(ErrorKind::invalid, "'{}': expected :port after the ]", clip(line));
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = rest.find(':');
    host.host = rest.substr(0, colon);
    if (colon != std::string_view::npos) port = rest.substr(colon + 1);
  }
  if (!is_safe(host.host))
    return fail(ErrorKind::invalid, "'{}': expected a host: user@host[:port] [keyfile]",
                clip(line));
  if (!port.empty()) {
    const auto number = parse_integer(port);
    constexpr int kPortMost = 65535;
    if (!number || *number < 1 || *number > kPortMost)
      return fail(ErrorKind::invalid, "'{}': expected a port, 1 to {}", clip(line), kPortMost);
    host.port = static_cast<int>(*number);
  }
  return host;
}

std::string ssh_sockets(os::Env& env) {
  constexpr std::size_t kLongest = 60;  // what ssh adds has to fit a socket's path, too
  std::vector<std::string> places;
  if (const auto run = env.variable("XDG_RUNTIME_DIR"); run && run->starts_with('/'))
    places.push_back(*run + "/berth-ssh");
  places.push_back(fmt::format("/tmp/berth-ssh-{}", env.user()));
  for (const auto& place : places) {
    if (place.size() > kLongest || !env.make_directory(place, 0700)) continue;
    const auto status = env.status(place);
    const auto real = env.real_path(place);
    constexpr mode_t kOfOthers = 0077;
    const bool ours = status && status->owner == env.user() && (status->mode & kOfOthers) == 0 &&
                      status->kind == os::FileStatus::Kind::directory;
    if (ours && real && *real == place) return place;
  }
  return "";
}

Transport ssh_transport(const SshHost& host, const SshOptions& options, const std::string& home,
                        const std::string& sockets) {
  const auto seconds = [](Duration time) { return std::max<std::int64_t>(1, to_ms(time) / 1000); };
  constexpr int kAlives = 3;
  Transport transport{.name = host.host,
                      .words = {"ssh"},
                      .shell = true,
                      .direct = options.direct,
                      .address = host.direct};
  if (host.port != 0) transport.name += fmt::format(":{}", host.port);
  auto& words = transport.words;
  words.insert(words.end(), options.options.begin(), options.options.end());
  for (const auto& option :
       {std::string("BatchMode=yes"), std::string("LogLevel=ERROR"),
        fmt::format("ConnectTimeout={}", seconds(options.connects_within)),
        fmt::format("ServerAliveInterval={}",
                    std::max<std::int64_t>(1, seconds(options.silent_most) / kAlives)),
        fmt::format("ServerAliveCountMax={}", kAlives)})
    words.insert(words.end(), {"-o", option});
  if (host.port != 0) words.insert(words.end(), {"-p", fmt::format("{}", host.port)});
  if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
  if (!host.key.empty()) {
    const std::string key = host.key.starts_with("~/") ? home + host.key.substr(1) : host.key;
    words.insert(words.end(), {"-i", key, "-o", "IdentitiesOnly=yes"});
  }
  words.emplace_back("-T");
  if (!sockets.empty()) {
    // Who comes by another key, or with another config, has a connection of his own.
    constexpr std::size_t kEnough = 16;
    const std::string mark = to_hex(sha256(home + join(words, "\n") + host.host));
    words.insert(words.end(), {"-o", "ControlMaster=auto", "-o", "ControlPersist=30", "-o",
                               fmt::format("ControlPath={}/{}", sockets, mark.substr(0, kEnough))});
  }
  words.insert(words.end(), {"--", host.host});
  return transport;
}

std::vector<std::string> ssh_lookup(const Transport& transport) {
  std::vector<std::string> words = transport.words;
  words.insert(words.begin() + 1, "-G");
  return words;
}

Result<SshHost> parse_ssh_lookup(std::string_view text) {
  std::string user, host, port;
  for (const auto line : split(text, '\n'))
    for (const auto& [name, to] :
         {std::pair("user ", &user), std::pair("hostname ", &host), std::pair("port ", &port)})
      if (line.starts_with(name)) *to = trim(line.substr(std::string_view(name).size()));
  return parse_ssh_host(fmt::format("{}@[{}]:{}", user, host, port));
}

Transport ssh_transport_between(const SshHost& host) {
  // No connection stays open behind it, and of those that the user's config wants others made no
  // port is taken.
  Transport transport{
      .name = host.host,
      .words = {"ssh", "-a", "-x", "-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o",
                "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
                "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes"},
      .shell = true};
  if (host.port != 0)
    transport.words.insert(transport.words.end(), {"-p", fmt::format("{}", host.port)});
  if (!host.user.empty()) transport.words.insert(transport.words.end(), {"-l", host.user});
  transport.words.insert(transport.words.end(), {"--", host.host});
  return transport;
}

std::unique_ptr<RemoteCluster> host_cluster(os::Env& env,
                                            std::vector<std::unique_ptr<Host>> hosts) {
  return std::make_unique<HostCluster>(env, std::move(hosts));
}

}  // namespace berth::remote
