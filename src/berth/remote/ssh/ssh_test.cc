#include "berth/remote/ssh/ssh.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/remote/clusters.h"

namespace berth::remote {
namespace {

TEST(SshHost, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(*parse_ssh_host("gpu-box"), (SshHost{.host = "gpu-box", .user = "", .key = ""}));
  EXPECT_EQ(*parse_ssh_host(" alice@10.0.0.7:2222   ~/.ssh/a key "),
            (SshHost{.host = "10.0.0.7", .user = "alice", .port = 2222, .key = "~/.ssh/a key"}));
  EXPECT_EQ(*parse_ssh_host("a@[fe80::1%eth0]:22"),
            (SshHost{.host = "fe80::1%eth0", .user = "a", .port = 22, .key = ""}));
}

TEST(SshHost, NothingThatSshOrAShellCouldMistake) {
  for (const auto* line : {"", "-oProxyCommand=x", "a@-b", "-a@b", "a@b:0", "a@b:70000", "a@b:x",
                           "a;b", "$(x)", "a@b\nc", "[a", "[a]b", "a@", "@a", "a'b"})
    EXPECT_FALSE(parse_ssh_host(line)) << line;
}

TEST(SshTransport, EndsInTheHostBehindADoubleDash) {
  const auto transport = ssh_transport({.host = "box", .user = "a", .port = 22, .key = "~/.ssh/k"},
                                       {.options = {"-F", "x"}}, "/home/a", "/run/s");
  EXPECT_TRUE(transport.shell);
  EXPECT_EQ(transport.name, "box:22");
  EXPECT_EQ(transport.words.back(), "box");
  EXPECT_EQ(transport.words.end()[-2], "--");
  const auto has = [&](const char* word) {
    return std::ranges::find(transport.words, word) != transport.words.end();
  };
  EXPECT_TRUE(has("/home/a/.ssh/k") && has("BatchMode=yes") && has("ControlMaster=auto"));
}

TEST(SshTransport, TellsHowSshReachesItsHost) {
  const auto transport = ssh_transport({.host = "box", .user = "", .key = ""},
                                       {.options = {"-F", "x"}}, "/home/a", "");
  const auto lookup = ssh_lookup(transport);
  EXPECT_EQ(lookup[0], "ssh");
  EXPECT_EQ(lookup[1], "-G");
  EXPECT_EQ(lookup.back(), "box");
  const auto host = parse_ssh_lookup(
      "host box\nuser alice\nhostname 10.0.0.7\nport 2222\nhostkeyalias x\nuserknownhostsfile y\n");
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(*host, (SshHost{.host = "10.0.0.7", .user = "alice", .port = 2222, .key = ""}));
  for (const auto* wrong : {"", "user a\nport 22\n", "user a\nhostname -oProxyCommand=x\nport 22\n",
                            "user a\nhostname b;c\nport 22\n"})
    EXPECT_FALSE(parse_ssh_lookup(wrong)) << wrong;
}

TEST(SshTransport, BetweenHostsPassesNothingOfOursOn) {
  const auto transport =
      ssh_transport_between({.host = "10.0.0.7", .user = "alice", .port = 2222, .key = "k"});
  const auto has = [&](const char* word) {
    return std::ranges::find(transport.words, word) != transport.words.end();
  };
  EXPECT_TRUE(has("BatchMode=yes") && has("-a") && has("2222") && has("alice"));
  EXPECT_FALSE(has("-i") || has("k"));
  EXPECT_EQ(transport.words.end()[-2], "--");
  for (const auto& word : transport.words)
    EXPECT_EQ(word.find("StrictHostKeyChecking"), std::string::npos) << "as its user has it";
}

constexpr auto kFile =
    "# mine\n"
    "lab:\n"
    "  kind: ssh\n"
    "  hosts: [a, b@c:22 k]\n"
    "  lease: 90s\n"
    "  env: {A: b}\n"
    "  prescript: module load cuda\n"
    "\n"
    "# theirs\n"
    "other:\n"
    "  kind: slurm\n";

TEST(Clusters, SayByWhichAddressOthersReachAHost) {
  const auto cluster = [](const std::string& direct,
                          const std::string& more = "") -> Result<std::vector<Transport>> {
    const auto env = os::posix_env();
    const auto text =
        fmt::format("lab: {{kind: ssh, hosts: [{{host: a, direct: {}}}, b]{}}}\n", direct, more);
    BERTH_ASSIGN(const auto entries, parse_clusters(text, "clusters.yaml"));
    BERTH_ASSIGN(const auto opened, open_cluster(*env, entries.front(), {}));
    return std::vector{opened.hosts[0]->transport(), opened.hosts[1]->transport()};
  };
  const auto transports = cluster("alice@node3:22");
  ASSERT_TRUE(transports) << transports.error().message;
  EXPECT_TRUE(transports->at(0).direct && transports->at(1).direct);
  EXPECT_EQ(transports->at(0).address, "alice@node3:22");
  EXPECT_EQ(transports->at(1).address, "");
  EXPECT_FALSE(cluster("node3", ", direct: false")->at(1).direct);
  for (const auto* wrong : {"a;b", "-oProxyCommand=x", "a@b key", "false", "True"})
    EXPECT_FALSE(cluster(wrong));
  EXPECT_FALSE(cluster("node3", ", direct: perhaps"));
}

TEST(Clusters, AreRead) {
  const auto entries = parse_clusters(kFile, "clusters.yaml");
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(entries->at(0).lease, std::chrono::seconds(90));
  EXPECT_EQ(entries->at(0).task_environment.prolog, "module load cuda");
  EXPECT_EQ(entries->at(1).kind, "slurm");
}

TEST(Clusters, SayWhatIsWrongAndWhere) {
  const auto wrong = [](const char* text) {
    const auto entries = parse_clusters(text, "c.yaml");
    return entries ? std::string("nothing") : entries.error().message;
  };
  EXPECT_TRUE(wrong("lab: {hosts: [a]}").starts_with("c.yaml:1: lab"))
      << wrong("lab: {hosts: [a]}");
  EXPECT_NE(wrong("lab:\n  kind: shh\n").find("c.yaml:2"), std::string::npos);
  EXPECT_NE(wrong("lab:\n  kind: ssh\n  lease: 0s\n").find("c.yaml:3"), std::string::npos);
  EXPECT_NE(wrong("\"a b\":\n  kind: ssh\n").find("name"), std::string::npos);
}

TEST(Clusters, AreAddedAndCutOutAgainWithTheCommentsOfOthersKept) {
  const auto more = with_cluster(kFile, "new", {"x"});
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_EQ(*without_cluster(*more, "new"), kFile);
  const auto less = without_cluster(kFile, "lab");
  ASSERT_TRUE(less) << less.error().message;
  EXPECT_EQ(*less, "# mine\n\n# theirs\nother:\n  kind: slurm\n");
  EXPECT_EQ(with_cluster(kFile, "lab", {"x"}).error().kind, ErrorKind::exists);
  EXPECT_EQ(without_cluster(kFile, "nobody").error().kind, ErrorKind::not_found);
}

TEST(SshErrors, KindSaysWhetherARetryHelpsAndTheMessageWhatToDo) {
  const Transport transport =
      ssh_transport({.host = "10.0.0.7", .user = "alice", .port = 2222, .key = "/k"},
                    {.options = {"-o", "UserKnownHostsFile=/h"}}, "/home/a", "/run/s");
  const auto explained = [&](const char* said) {
    return explain_ssh(transport, {ErrorKind::io, said});
  };
  const std::string login = "ssh -o UserKnownHostsFile=/h -p 2222 -l alice -i /k 10.0.0.7";
  struct Case {
    const char* said;
    ErrorKind kind;
    std::string advice;
  };
  for (const auto& [said, kind, advice] :
       {Case{"Host key verification failed.", ErrorKind::denied,
             "ssh-keygen -R '[10.0.0.7]:2222' -f /h"},
        Case{"Host key verification failed.", ErrorKind::denied, login},
        Case{"alice@10.0.0.7: Permission denied (publickey).", ErrorKind::denied, login},
        Case{"Received disconnect: Too many authentication failures", ErrorKind::denied, login},
        Case{"/home/a/.ssh/config: terminating, 1 bad configuration options", ErrorKind::invalid,
             login},
        Case{"ssh: Could not resolve hostname x: Name or service not known", ErrorKind::io, login},
        Case{"ssh: connect to host x port 22: Connection refused", ErrorKind::io, login},
        Case{"mkdir: Permission denied", ErrorKind::io, "mkdir: Permission denied"}}) {
    const Error error = explained(said);
    EXPECT_EQ(error.kind, kind) << said;
    EXPECT_NE(error.message.find(advice), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("BatchMode"), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find("Control"), std::string::npos) << error.message;
  }
  const Error here = explain_ssh({}, {ErrorKind::io, "Host key verification failed."});
  EXPECT_EQ(here, (Error{ErrorKind::io, "Host key verification failed."}));
}

}  // namespace
}  // namespace berth::remote
