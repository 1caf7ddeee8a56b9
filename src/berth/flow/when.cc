// The conditions of `when`: terms joined by `and`, each `exists(PATH)`, `not exists(PATH)` or
// `LEFT SIGN TEXT`. LEFT is a NAME, `metric(STEP, NAME)` or `json(STEP.OUTPUT, KEY.KEY)`. Nothing
// is ever executed.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
#include "berth/base/units.h"
#include "berth/flow/notation.h"

namespace berth::flow {
namespace {

struct Token {
  std::string text;
  bool quoted = false;  // then it is a value, whatever it looks like
  bool is(std::string_view what) const { return !quoted && text == what; }
};

constexpr std::size_t kMostTerms = 100;

Result<std::vector<Token>> tokens_of(std::string_view text, const Field& at) {
  std::vector<Token> tokens;
  while (!(text = trim(text)).empty()) {
    if (text[0] == '\'' || text[0] == '"') {
      const auto end = text.find(text[0], 1);
      if (end == std::string_view::npos) return at.error("a quote is not closed");
      tokens.push_back({std::string(text.substr(1, end - 1)), true});
      text.remove_prefix(end + 1);
      continue;
    }
    constexpr std::array<std::string_view, 4> kTwo{"==", "!=", "<=", ">="};
    std::size_t size = 2;
    if (std::ranges::none_of(kTwo, [&](auto sign) { return text.starts_with(sign); }))
      size = std::string_view("()<>").contains(text[0])
                 ? 1
                 : std::min(text.find_first_of(" \t\n()=!<>'\""), text.size());
    if (size == 0)
      return at.error(fmt::format("'{}' is not allowed here{}", text[0],
                                  text[0] == '=' ? "; to compare say ==" : ""));
    tokens.push_back({std::string(text.substr(0, size))});
    text.remove_prefix(size);
  }
  return tokens;
}

class Reader {
 public:
  Reader(std::vector<Token> tokens, const KnownNames& known, const WhenSources& sources,
         const Field& at)
      : tokens_(std::move(tokens)), known_(known), sources_(sources), at_(at) {}

  Result<std::vector<Condition>> read() {
    std::vector<Condition> terms;
    for (;;) {
      BERTH_ASSIGN(Condition term, take_term());
      terms.push_back(std::move(term));
      if (next_ == tokens_.size()) return terms;
      if (terms.size() == kMostTerms) return at_.error("too many terms");
      if (!tokens_[next_].is("and"))
        return at_.error(fmt::format("terms can only be joined by 'and'; got '{}'", clip(peek())));
      ++next_;
    }
  }

 private:
  std::string peek() const { return next_ < tokens_.size() ? tokens_[next_].text : "the end"; }

  bool take(std::string_view what) {
    if (next_ == tokens_.size() || !tokens_[next_].is(what)) return false;
    ++next_;
    return true;
  }

  /// "exists" and what opens its parenthesis.
  bool take_function(std::string_view name) {
    if (next_ + 1 >= tokens_.size() || !tokens_[next_].is(name) || !tokens_[next_ + 1].is("("))
      return false;
    next_ += 2;
    return true;
  }

  Result<Token> take_value(std::string_view what) {
    constexpr std::array<std::string_view, 9> kSigns{"==", "!=", "<", "<=", ">",
                                                     ">=", "(",  ")", "and"};
    if (next_ == tokens_.size() ||
        std::ranges::any_of(kSigns, [&](auto sign) { return tokens_[next_].is(sign); }))
      return at_.error(fmt::format("expected {}, got '{}'", what, clip(peek())));
    return tokens_[next_++];
  }

  /// Up to the closing parenthesis, with commas between them.
  Result<std::vector<Token>> take_arguments(std::string_view usage) {
    const auto wrong = [&](std::string_view found) {
      return at_.error(fmt::format("expected {}, got '{}'", usage, clip(found)));
    };
    std::vector<Token> found;
    bool wants = true;
    while (!take(")")) {
      if (next_ == tokens_.size()) return wrong("the end");
      const Token& token = tokens_[next_++];
      std::string_view rest = token.text;
      for (bool more = true; more;) {
        const auto comma = token.quoted ? rest.npos : rest.find(',');
        const std::string_view word = rest.substr(0, comma);
        if (!word.empty() || token.quoted) {
          if (!std::exchange(wants, false)) return wrong(word);
          found.push_back({std::string(word), token.quoted});
        }
        more = comma != rest.npos;
        if (!more) break;
        if (std::exchange(wants, true)) return wrong(",");
        rest.remove_prefix(comma + 1);
      }
    }
    if (wants) return wrong(")");
    return found;
  }

  Result<Condition> take_term() {
    Condition term{.left = {}, .right = {}};
    term.negated = take("not");
    if (take_function("exists")) {
      term.kind = Condition::Kind::exists;
      BERTH_ASSIGN(const Token path, take_value("a path"));
      BERTH_ASSIGN(term.path, sources_.file(path.text));
      BERTH_TRY(check_names(term.path.pattern, known_, at_));
      if (!take(")")) return at_.error(fmt::format("expected ')', got '{}'", clip(peek())));
      term.text = fmt::format("{}exists({})", term.negated ? "not " : "", path.text);
      return term;
    }
    if (term.negated) return at_.error("'not' is only allowed before exists(…); otherwise use !=");
    if (take_function("metric")) {
      BERTH_TRY(read_metric(term));
    } else if (take_function("json")) {
      BERTH_TRY(read_json(term));
    } else {
      BERTH_ASSIGN(const Token left, take_value("the name of a value"));
      term.left = term.text = left.text;
      BERTH_TRY(check_left(term.left));
    }
    BERTH_TRY(read_comparison(term));
    return term;
  }

  Status read_metric(Condition& term) {
    term.kind = Condition::Kind::metric;
    constexpr std::string_view kUsage = "metric(STEP, NAME)";
    BERTH_ASSIGN(const auto arguments, take_arguments(kUsage));
    if (arguments.size() != 2)
      return at_.error(fmt::format("expected {}, got {} of the two", kUsage, arguments.size()));
    BERTH_ASSIGN(const StepIndex step, sources_.step(arguments[0].text));
    term.path.step = step;
    term.keys = {arguments[1].text};
    term.text = fmt::format("metric({}, {})", arguments[0].text, arguments[1].text);
    return {};
  }

  Status read_json(Condition& term) {
    term.kind = Condition::Kind::json;
    constexpr std::string_view kUsage = "json(STEP.OUTPUT, KEY)";
    BERTH_ASSIGN(const auto arguments, take_arguments(kUsage));
    if (arguments.size() < 2)
      return at_.error(
          fmt::format("expected {}: a file that a step writes, and a key in it", kUsage));
    BERTH_ASSIGN(term.path, sources_.file(arguments[0].text));
    if (!term.path.step)
      return at_.error(fmt::format("'{}' is not an output of a step; expected {}",
                                   clip(arguments[0].text), kUsage));
    BERTH_TRY(check_names(term.path.pattern, known_, at_));
    if (fileset::is_pattern(term.path.pattern))
      return at_.error(
          fmt::format("'{}' is a pattern; expected one file", clip(arguments[0].text)));
    Words shown{arguments[0].text};
    for (const auto& key : std::span(arguments).subspan(1)) {
      shown.push_back(key.quoted ? fmt::format("'{}'", key.text) : key.text);
      if (key.quoted) {
        term.keys.push_back(key.text);
        continue;
      }
      for (const auto part : split(key.text, '.')) {
        if (part.empty())
          return at_.error(fmt::format("'{}' is not a path to a value: join keys with single dots",
                                       clip(key.text)));
        term.keys.emplace_back(part);
      }
    }
    term.text = fmt::format("json({})", join(shown, ", "));
    return {};
  }

  Status read_comparison(Condition& term) {
    const auto sign = next_ < tokens_.size() && !tokens_[next_].quoted
                          ? kSignNames.value(tokens_[next_].text)
                          : std::nullopt;
    if (!sign)
      return at_.error(fmt::format("expected ==, !=, <, <=, > or >=, got '{}'", clip(peek())));
    ++next_;
    term.sign = *sign;
    BERTH_ASSIGN(Token right, take_value("what to compare with"));
    term.right = std::move(right.text);
    term.names_some = !right.quoted && !names_in(term.right).empty();
    if (term.names_some) return check_names(term.right, known_, at_);
    if (term.sign != Condition::Sign::equal && term.sign != Condition::Sign::unequal &&
        !parse_number(term.right))
      return at_.error(fmt::format("{} compares numbers; '{}' is not a number",
                                   kSignNames.name(term.sign), clip(term.right)));
    return {};
  }

  Status check_left(const std::string& name) const {
    if (name.starts_with("env.") && name.size() > 4) return {};
    if (known_.has(name)) return {};
    const std::vector<std::string_view> views(known_.values.begin(), known_.values.end());
    const auto meant = nearest(name, views);
    return at_.error(
        fmt::format("no value is called '{}'{}", clip(name),
                    !meant.empty() ? fmt::format("; did you mean '{}'?", meant)
                    : name == "true" || name == "false"
                        ? "; a term is a comparison (mode == fast) or exists(PATH)"
                        : "; a term names a parameter or a variable of the step, or env.NAME"));
  }

  std::vector<Token> tokens_;
  const KnownNames& known_;
  const WhenSources& sources_;
  const Field& at_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::vector<Condition>> read_when(const Field& field, const KnownNames& known,
                                         const WhenSources& sources) {
  BERTH_ASSIGN(const std::string text, field.text());
  BERTH_ASSIGN(auto tokens, tokens_of(text, field));
  return Reader(std::move(tokens), known, sources, field).read();
}

Status check_conditions(Flow& flow) {
  for (const auto& step : flow.steps)
    for (const auto& term : step.when) {
      const bool reads = term.kind == Condition::Kind::metric || term.kind == Condition::Kind::json;
      if (!reads) continue;
      Step& asked = flow.steps[static_cast<std::size_t>(term.path.step->value)];
      const auto wrong = [&](std::string_view what) {
        return fail(ErrorKind::invalid, "{}:{}: steps.{}.when: {}: {}", step.file, step.when_line,
                    step.name, term.text, what);
      };
      if (asked.temp)
        return wrong(fmt::format(
            "the output of {} is temporary and may be removed before it is read", asked.name));
      if (term.kind == Condition::Kind::metric)
        asked.asked_metrics.push_back(term.keys.front());
      else if (asked.out[term.path.output].directory && term.path.pattern.empty())
        return wrong(fmt::format("the output is a directory; name a file in it: {}.{}/FILE",
                                 asked.name, asked.out[term.path.output].name));
    }
  return {};
}

}  // namespace berth::flow
