#include "berth/exec/command.h"

#include <gtest/gtest.h>

#include "berth/base/rng.h"
#include "berth/testing/shell.h"

namespace berth::exec {
namespace {

using Texts = std::vector<std::string>;

/// Stands {a} and {b} for these.
Lookup values(std::string a, std::string b = "") {
  return [a = std::move(a), b = std::move(b)](std::string_view name) -> std::optional<std::string> {
    if (name == "a") return a;
    if (name == "b") return b;
    return std::nullopt;
  };
}

/// The text that the shell gets.
std::string for_shell(const std::string& text, const Lookup& lookup) {
  const auto argv = command_line({text, {}}, lookup);
  EXPECT_EQ(Texts(argv.begin(), argv.end() - 1), words_of_shell({})) << text;
  return argv.back();
}

TEST(Command, ATextIsGivenToTheStrictShellUnlessItSaysOtherwise) {
  EXPECT_EQ(command_line({"a | b", {}, {}}, values("")),
            (Texts{"bash", "--norc", "-euo", "pipefail", "-c", "a | b"}));
  const Texts plain(kPlainShell.begin(), kPlainShell.end());
  EXPECT_EQ(command_line({"a | b", {}, plain}, values("")), (Texts{"/bin/sh", "-c", "a | b"}));
  EXPECT_EQ(command_line({"a | {a}", {}, {"zsh", "-fc"}}, values("x y")),
            (Texts{"zsh", "-fc", "a | 'x y'"}));
  EXPECT_EQ(command_line({"a b", {}, plain}, values("")), (Texts{"a", "b"}));
  for (const auto& shell : {Texts{}, plain})
    EXPECT_EQ(text_for_shell(command_line({"a | b", {}, shell}, values(""))), "a | b");
  EXPECT_EQ(text_for_shell({"bash", "-c", "a | b"}), std::nullopt);
  EXPECT_TRUE(is_given_to(kStrictShell, command_line({"a | b", {}, {}}, values(""))));
  EXPECT_FALSE(is_given_to(kStrictShell, {"bash", "--norc", "-euo", "pipefail", "-c"}));
}

TEST(Command, AScriptAmongWordsIsATextForItsShell) {
  const Lists lists = [](std::string_view name) -> std::optional<Texts> {
    if (name == "f") return Texts{"a b", "c"};
    return std::nullopt;
  };
  const auto line = [&](const Texts& words) { return command_line_of_lists({"", words}, lists); };
  EXPECT_EQ(line({"bash", "-euo", "pipefail", "-c", "cat {f} | sort", "{f}"}),
            (Texts{"bash", "-euo", "pipefail", "-c", "cat 'a b' c | sort", "a b", "c"}));
  EXPECT_EQ(line({"/bin/sh", "--posix", "-ec", "cat {f}"}),
            (Texts{"/bin/sh", "--posix", "-ec", "cat 'a b' c"}));
  EXPECT_EQ(line({"bash", "script", "-c", "{f}"}), (Texts{"bash", "script", "-c", "a b", "c"}));
  EXPECT_EQ(line({"grep", "-c", "{f}"}), (Texts{"grep", "-c", "a b", "c"}));
  EXPECT_EQ(line({"sh", "-c"}), (Texts{"sh", "-c"}));
  EXPECT_EQ(misplaced_name({"", {"sh", "-c", "echo `{a}`"}}, values("x")).name, "a");
  EXPECT_EQ(misplaced_name({"", {"sh", "-c"}}, values("x")).name, "");
}

TEST(Command, NoValueIsTakenApartByWhatOnlyBashExpands) {
  for (const auto& [text, a, wanted] :
       {std::tuple{"p {z{a}} x{z{a}}y;", "1,2", Texts{"{z1,2}", "x{z1,2}y"}},
        {"p {{a}} x{{a}}y {{c}};", "1,2", Texts{"{a}", "x{a}y", "{{c}}"}},
        {"p {{a},{b}};", "1,2", Texts{"1,2", "b"}},
        {"p {1..{a}};", "2", Texts{"1", "2"}},
        {"p $((1)) ${none:-{a}};", "{1,2}", Texts{"1", "{1,2}"}},
        {"cat <<<x; p {a};", "a b", Texts{"x\na b"}}})
    EXPECT_EQ(
        shell_words("p() { printf '%s\\0' \"$@\"; }; " + for_shell(text, values(a, "b")), "bash"),
        wanted)
        << text;
}

TEST(Command, ArithmeticRunsNoValue) {
  for (const std::string shell : {"/bin/sh", "bash"}) {
    for (const std::string text : {"echo $(( {a} ));", "echo \"$(( 1 + {a} ))\";",
                                   "echo $(( \"{a}\" ));", "echo $(( ${none:-{a}} ));"})
      for (const std::string value :
           {"PATH[$(echo pwned >&2)0]", "1)); echo pwned #", "1)); echo 'pwned", "\"; echo pwned;"})
        EXPECT_EQ(shell_output("exec 2>&1; echo; " + for_shell(text, values(value)), shell)
                      .find("\npwned"),
                  std::string::npos)
            << text << value;
    EXPECT_EQ(shell_output(for_shell("echo $(( {a} * {b} ));", values("6", "7")), shell), "42\n");
  }
}

TEST(Command, NeedsAShellOnlyWhenItMeansSomethingToOne) {
  for (const std::string_view text :
       {"./train.py --lr {lr} --width={width}", "echo a=b {x}", "{prog} x", "./a ]{x}^%@+,", "",
        " ", "/bin/echo {y}", "wc -l", "train,it", "./x time if", "find . -exec wc {} +",
        "./a {b} {c d} }{ x{", "{prog} cd", "echo a,b..c", "./x %1"})
    EXPECT_FALSE(needs_shell(text)) << text;
  for (const std::string_view text :
       {"a | b",      "a && b",    "a; b",    "a < {x}",      "a > {x}",     "(a)",
        "echo $HOME", "echo `a`",  "a\\ b",   "echo \"{x}\"", "echo '{x}'",  "ls *",
        "ls ?",       "ls [ab]",   "a # b",   "ls ~",         "a\nb",        "! a",
        "FOO=1 ./a",  "{x}=1 ./a", "cd /tmp", "exec ./a",     "export A",    ". ./env",
        "umask 077",  "time ./x",  "%1",      "a\rb",         "a --home=~/x"})
    EXPECT_TRUE(needs_shell(text)) << text;
  for (const std::string_view text :
       {"mkdir {out.d}/{x,y}", "mkdir {out.d}/n{1..2}", "cp {in.a}{,.bak}", "x {a,{b}}",
        "x {{a},{b}}", "x {{in.a},y}/z", "x a{b,c}d{e", "x --{a..c}", "./t{1,2}", "{ ./a}", "{"})
    EXPECT_TRUE(needs_shell(text)) << text;
}

/// What the shells know themselves is known here too, unless PATH has it with the same meaning.
TEST(Command, EveryBuiltinAndReservedWordOfBashNeedsAShell) {
  const Texts also_programs{"echo", "false", "kill", "printf", "pwd", "test", "true"};
  std::string listed = shell_output("compgen -b; compgen -k", "bash");
  const auto all = words(listed);
  EXPECT_GT(all.size(), 70U);
  for (const auto word : all)
    EXPECT_NE(needs_shell(word), std::ranges::find(also_programs, word) != also_programs.end())
        << word;
}

/// Words that need no shell are what bash and dash make of the text.
TEST(Command, ATextThatNeedsNoShellHasTheWordsThatAShellMakesOfIt) {
  constexpr std::string_view kParts[] = {
      "a",    "b",    "{",  "}",  ",",  "..",   "{a,b}", "{1..3}", "{}", "{x}", "1", " ",
      "  ",   "\t",   "=",  "~",  "~/", ":",    "-",     "%",      "^",  "@",   "+", "]",
      "[",    "*",    "?",  "!",  "#",  "$",    "'",     "\"",     "\\", "/",   ".", "_",
      "\xc3", "\xa9", "\r", "\v", "\f", "\x01", "{{a}",  "}}",     ";",  "&",   "|", "<",
      ">",    "(",    ")",  "\n", "`",  "x=~",  "\x7f",  "--o="};
  Rng rng(7);
  std::string script = "p() { printf '%s\\0' \"$@\"; }\n";
  Texts expected;
  int direct = 0;
  for (int tries = 0; direct < 3000 && tries < 200'000; ++tries) {
    std::string text = "p ";
    for (auto left = 1 + rng.below(7); left > 0; --left)
      text += kParts[rng.below(std::size(kParts))];
    if (needs_shell(text)) continue;
    ++direct;
    script += text + " .\n";
    auto line = command_line({text + " .", {}}, [](auto) { return std::nullopt; });
    expected.insert(expected.end(), line.begin() + 1, line.end());
  }
  EXPECT_EQ(direct, 3000);
  for (const std::string shell : {"bash", "/bin/sh"})
    EXPECT_EQ(shell_words(script, shell), expected) << shell;
}

TEST(Command, AnAnsiCQuoteIsReadAsTheShellReadsIt) {
  const auto printed = [](const std::string& text, const std::string& value) {
    return shell_output(for_shell(text, values(value)), "bash");
  };
  EXPECT_EQ(printed("printf '%s' a$'\\t'{a}", "x y'"), "a\tx y'");
  EXPECT_EQ(printed("printf '%s' $'it\\'s'{a}", "$x"), "it's$x");
  EXPECT_EQ(printed("printf '%s' $'\\\\'{a}", "x"), "\\x");
  EXPECT_EQ(printed("printf '%s' $'a\\t{a}\\n'\"{a}\"", "b\\t'"), "a\tb\\t'\nb\\t'");
  EXPECT_EQ(printed("printf '%s' $\"a{a}\"'{a}'", "$b`"), "a$b`$b`");
  EXPECT_EQ(printed("printf '%s' $(printf %s $'\\x41' {a})", "b"), "Ab");
  EXPECT_EQ(printed("x=1; printf '%s' $$'{a}' | tr -d 0-9", "$b"), "$b");
  EXPECT_EQ(misplaced_name({"sort -t$'\\t' {a}", {}, {"sh", "-c"}}, values("x")).name, "");
  EXPECT_EQ(misplaced_name({"sort -t$'{a}' {a}", {}, {"sh", "-c"}}, values("x")).place,
            "in $'…' of a shell that may not know such quotes");
  EXPECT_EQ(misplaced_name({"echo $'\\'' {a}", {}, {"sh", "-c"}}, values("x")).place,
            "after \\' within $'…', where bash and dash differ");
  EXPECT_EQ(misplaced_text({"echo `{a}`", {}}, values("x")),
            "{a} is in `…`, where the shell could split or change its value; assign it to a "
            "variable first (v={a}) and use \"$v\" here");
}

TEST(Command, ADirectCommandKeepsAValueInItsWord) {
  struct Case {
    std::string text;
    Texts argv;
  };
  const Case kCases[] = {{"run {a}", {"run", "x; y 'z'"}},
                         {"run --{a}={b}", {"run", "--x; y 'z'={a}"}},
                         {"  run\t{a}{b} ", {"run", "x; y 'z'{a}"}},
                         {"{a}", {"x; y 'z'"}},
                         {"run {c} {a {} {a}}", {"run", "{c}", "{a", "{}", "x; y 'z'}"}},
                         {"run", {"run"}}};
  for (const auto& [text, argv] : kCases)
    EXPECT_EQ(command_line({text, {}}, values("x; y 'z'", "{a}")), argv) << text;
  EXPECT_EQ(command_line({"run {a} end", {}}, values("")), (Texts{"run", "", "end"}));
}

TEST(Command, WordsNeverMeetAShell) {
  const Command command{"ignored; {a}", {"printf", "a | {a}", "${a}{b}", "{c}"}};
  EXPECT_EQ(command_line(command, values("$(x)", "y")),
            (Texts{"printf", "a | $(x)", "${a}y", "{c}"}));
  EXPECT_EQ(placeholders(command), (Texts{"a", "b", "c"}));
  EXPECT_EQ(misplaced_name({"", {"`{a}`"}}, values("x")).name, "");
}

TEST(Command, NamesItsPlaceholdersOnceInOrder) {
  EXPECT_EQ(placeholders({"x {b} {in.text} ${c} {b}{out-1} {} {a b} {e", {}}),
            (Texts{"b", "in.text", "out-1"}));
}

TEST(Command, PutsAValueIntoTheQuotesItStandsIn) {
  constexpr std::string_view kCases[][2] = {{"echo {a};", "echo 'it'\\''s $1';"},
                                            {"echo '{a}'", "echo 'it'\\''s $1'"},
                                            {"echo \"{a}\"", "echo \"it's \\$1\""},
                                            {"echo \"'{a}'\"", "echo \"'it's \\$1'\""},
                                            {"echo x{a}y;", "echo x'it'\\''s $1'y;"},
                                            {"echo {a}{b};", "echo 'it'\\''s $1'bare;"},
                                            {"echo ${a} {c} ${b:-x};", "echo ${a} {c} ${b:-x};"},
                                            {"echo {b} '{b}' \"{b}\"", "echo bare 'bare' \"bare\""},
                                            {"echo \\{b};", "echo bare;"},
                                            {"echo $HOME{b};", "echo $HOME\"\"bare;"},
                                            {"echo {b}>f", "echo 'bare'>f"}};
  for (const auto& [text, expected] : kCases)
    EXPECT_EQ(for_shell(std::string(text), values("it's $1", "bare")), expected);
}

/// A script that prints words with NULs behind them, and the words, made of {a} and {b}.
struct Position {
  std::string script;
  Texts words;
};
const Position kPositions[] = {
    {"p {a}", {"{a}"}},
    {"p '{a}'", {"{a}"}},
    {"p \"{a}\"", {"{a}"}},
    {"p x{a}y 'x{a}y' \"x{a}y\"", {"x{a}y", "x{a}y", "x{a}y"}},
    {"p {a}{b} '{a}{b}' \"{a}{b}\"", {"{a}{b}", "{a}{b}", "{a}{b}"}},
    {"p \"'{a}'\" '\"{a}\"' \"a\"'b'{a}\"c\"", {"'{a}'", "\"{a}\"", "ab{a}c"}},
    {"p \\{a} x\\{a} \\\\{a}", {"{a}", "x{a}", "\\{a}"}},
    {"p \"\\{a}\" \"\\\\{a}\" '\\{a}'", {"\\{a}", "\\{a}", "\\{a}"}},
    {"p \"\\\"{a}\\\"\" \\\"{a}", {"\"{a}\"", "\"{a}"}},
    {"v=V; p $v{a} \"$v{a}\" \\$v{a} \"\\$v{a}\" '$v'{a}",
     {"V{a}", "V{a}", "$v{a}", "$v{a}", "$v{a}"}},
    {"v={a}; p \"$v\" \"${v}\"", {"{a}", "{a}"}},
    {"p ${none} {a} ${none:-{a}} \"${none:-{a}}\" ${none:-\"{a}\"}", {"{a}", "{a}", "{a}", "{a}"}},
    {"p \"$(p {a} {b})\" | tr -d '\\000'; p", {"{a}{b}"}},
    {"p \"$(printf '%s|' '{a}' \"{b}\")\"", {"{a}|{b}|"}},
    {"p \"x$(printf '%s|' \"$(printf %s {a}; echo .)\")y\"", {"x{a}.|y"}},
    {"(p {a}; (p '{b}'))", {"{a}", "{b}"}},
    {"# it's a \"comment {a}\np {a}", {"{a}"}},
    {"p x#y'{a}' # don't `\np {b}", {"x#y{a}", "{b}"}},
    {"p x \\\n# don't {a}\np {a} \\\n '{b}'", {"x", "{a}", "{b}"}},
    {"p $# \"${#none}\" {a}", {"0", "0", "{a}"}},
    {"p `echo 'it'` {a}", {"it", "{a}"}},
    {"p $((1+(2*3))) \"$((7))\" {a}", {"7", "7", "{a}"}},
    {"case x in (y) p {b};; x) p {a};; esac", {"{a}"}},
    {"f() { p \"$1\" {b}; }; f {a}", {"{a}", "{b}"}},
    {"if p {a}; then p '{b}'; fi && p {a} || p no", {"{a}", "{b}", "{a}"}},
    {"p \"{c}\" '{c}' {a}", {"{c}", "{c}", "{a}"}}};

std::string filled(std::string text, const std::string& a, const std::string& b) {
  return command_line({"", {text}}, values(a, b)).front();
}

TEST(Command, TheShellReadsBackEveryValueInEveryPosition) {
  Rng rng(1);
  std::vector<std::pair<std::string, std::string>> pairs{
      {"", ""},    {"2", "3"},   {"~", "-n"}, {"$(false)", "`false`"},
      {"'", "\""}, {"\\", "\n"}, {"a", "}"},  {"; touch pwned\n", "'; touch pwned; '"}};
  while (pairs.size() < 60) pairs.emplace_back(hostile_value(rng), hostile_value(rng));
  for (const auto& position : kPositions) {
    std::string script = "p() { printf '%s\\000' \"$@\"; }\n";
    Texts expected;
    for (const auto& [a, b] : pairs) {
      // What $(…) drops at the end of its output is no fault of ours.
      const bool substituted = position.script.find("\"$(p ") != std::string::npos;
      if (substituted && (b.ends_with('\n') || b.empty())) continue;
      script += "( " + for_shell(position.script + "\n", values(a, b)) + ")\n";
      for (const auto& word : position.words) expected.push_back(filled(word, a, b));
    }
    for (const std::string shell : {"/bin/sh", "bash"})
      EXPECT_EQ(shell_words(script, shell), expected) << shell << ": " << position.script;
  }
}

TEST(Command, ANumberIsNoDescriptor) {
  EXPECT_EQ(shell_output(for_shell("echo {a}>/dev/null; echo {a} >&1; echo {a}<&0", values("2"))),
            "2\n2\n");
}

TEST(Command, APlaceholderInACommentStays) {
  EXPECT_EQ(for_shell("# {a}\necho {a} #{a}\n#\necho {a}", values("x\ny")),
            "# {a}\necho 'x\ny' #{a}\n#\necho 'x\ny'");
}

TEST(Command, SaysWhereNoValueCanBePutSafelyAndPutsNone) {
  for (const std::string text :
       {"echo `echo {a}`", "echo \"`echo '{a}'`\"", "cat <<E\n{a}\nE\n",
        "cat <<'E'\nit's\nE\necho {a}", "cat <<E <<<x\n{a}\nE\n", "cat <<-E; echo x\n{a}\n",
        "echo \"${x:-'{a}'}\"", "echo \"$(case x in y) echo {a};; esac)\"",
        "echo \"$(\ncase x in y) echo {a};; esac)\""}) {
    EXPECT_EQ(misplaced_name({text, {}}, values("x")).name, "a") << text;
    EXPECT_EQ(misplaced_name({text, {}}, [](std::string_view) { return std::nullopt; }).name, "")
        << text;
    EXPECT_EQ(for_shell(text, values("$(false)")), text);
  }
  for (const std::string text :
       {"echo `x` {a}", "echo {a} <<E\nit's\nE\n", "echo \"$(echo lowercase {a})\"", "# `\n{a}",
        "echo $((1<<2)) \n{a}", "(case x in x) echo {a};; esac)", "echo '`' {a}",
        "cat <f\n<g cat {a}", "cat <<<x\necho {a}", "plain {a}"})
    EXPECT_EQ(misplaced_name({text, {}}, values("x")).name, "") << text;
}

TEST(Command, AListIsSeveralWords) {
  const Lists lists = [](std::string_view name) -> std::optional<Texts> {
    if (name == "l") return Texts{"a", "b c", ""};
    if (name == "none") return Texts{};
    return std::nullopt;
  };
  const auto words_of = [&](std::string text) {
    return command_line_of_lists({std::move(text), {}}, lists);
  };
  EXPECT_EQ(words_of("x {l} y"), (Texts{"x", "a", "b c", "", "y"}));
  EXPECT_EQ(words_of("x --l={l}:"), (Texts{"x", "--l=a", "b c", ":"}));
  EXPECT_EQ(words_of("x {none} -{none}"), (Texts{"x", "-"}));
  EXPECT_EQ(command_line_of_lists({{}, {"x", "", "{l}", "{none}", "{other}"}}, lists),
            (Texts{"x", "", "a", "b c", "", "{other}"}));
  EXPECT_EQ(shell_words("printf '%s\\0' " + words_of("{l} -{l}- \"{l}\" '{l}'").back()),
            (Texts{"a", "b c", "", "-a", "b c", "-", "a b c ", "a b c "}));
  EXPECT_EQ(words_of("cat {none} | x").back(), "cat  | x");
}

TEST(Command, NoValueOfAListEscapes) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    Texts list;
    for (std::uint64_t left = rng.below(4); left > 0; --left) list.push_back(hostile_value(rng));
    const auto line = command_line_of_lists(
        {"printf '%s\\0' {l} end", {}},
        [&](std::string_view name) { return name == "l" ? std::optional(list) : std::nullopt; });
    Texts wanted = list;
    wanted.emplace_back("end");
    for (const std::string shell : {"/bin/sh", "bash"})
      EXPECT_EQ(shell_words(line.back(), shell), wanted) << shell << ", seed " << seed;
  }
}

}  // namespace
}  // namespace berth::exec
