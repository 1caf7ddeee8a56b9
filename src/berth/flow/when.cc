// The conditions of `when`: terms joined by `and`, each `NAME == TEXT`, `NAME != TEXT`,
// `exists(PATH)` or `not exists(PATH)`. Nothing is ever executed.
#include <algorithm>
#include <array>

#include "berth/base/text.h"
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
    std::size_t size = 2;
    if (!text.starts_with("==") && !text.starts_with("!="))
      size = text[0] == '(' || text[0] == ')'
                 ? 1
                 : std::min(text.find_first_of(" \t\n()=!'\""), text.size());
    if (size == 0)
      return at.error(fmt::format("'{}' means nothing here{}", text[0],
                                  text[0] == '=' ? "; to compare say ==" : ""));
    tokens.push_back({std::string(text.substr(0, size))});
    text.remove_prefix(size);
  }
  return tokens;
}

class Reader {
 public:
  using PathSource = std::function<Result<Source>(const std::string& text)>;

  Reader(std::vector<Token> tokens, const KnownNames& known, const PathSource& source,
         const Field& at)
      : tokens_(std::move(tokens)), known_(known), source_(source), at_(at) {}

  Result<std::vector<Condition>> read() {
    std::vector<Condition> terms;
    for (;;) {
      BERTH_ASSIGN(Condition term, take_term());
      terms.push_back(std::move(term));
      if (next_ == tokens_.size()) return terms;
      if (terms.size() == kMostTerms) return at_.error("too many terms");
      if (!tokens_[next_].is("and"))
        return at_.error(fmt::format("terms are joined by 'and' alone; found '{}'", clip(peek())));
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

  Result<std::string> take_value(std::string_view what) {
    constexpr std::array<std::string_view, 5> kSigns{"==", "!=", "(", ")", "and"};
    if (next_ == tokens_.size() ||
        std::ranges::any_of(kSigns, [&](auto sign) { return tokens_[next_].is(sign); }))
      return at_.error(fmt::format("wanted {}, found '{}'", what, clip(peek())));
    return tokens_[next_++].text;
  }

  Result<Condition> take_term() {
    Condition term{.left = {}, .right = {}};
    term.negated = take("not");
    const bool exists =
        next_ + 1 < tokens_.size() && tokens_[next_].is("exists") && tokens_[next_ + 1].is("(");
    if (exists) {
      next_ += 2;
      term.kind = Condition::Kind::exists;
      BERTH_ASSIGN(const std::string path, take_value("a path"));
      BERTH_ASSIGN(term.path, source_(path));
      BERTH_TRY(check_names(term.path.pattern, known_, at_));
      if (!take(")")) return at_.error(fmt::format("wanted ')', found '{}'", clip(peek())));
      return term;
    }
    if (term.negated) return at_.error("'not' stands before exists(…) only; else say !=");
    BERTH_ASSIGN(term.left, take_value("the name of a value"));
    BERTH_TRY(check_left(term.left));
    if (take("!="))
      term.negated = true;
    else if (!take("=="))
      return at_.error(fmt::format("wanted == or !=, found '{}'", clip(peek())));
    BERTH_ASSIGN(term.right, take_value("what to compare with"));
    return term;
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
                        ? "; a term compares (mode == fast) or asks exists(PATH)"
                        : "; a term names a parameter or a variable of the step, or env.NAME"));
  }

  std::vector<Token> tokens_;
  const KnownNames& known_;
  const PathSource& source_;
  const Field& at_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::vector<Condition>> read_when(
    const Field& field, const KnownNames& known,
    const std::function<Result<Source>(const std::string& text)>& source) {
  BERTH_ASSIGN(const std::string text, field.text());
  BERTH_ASSIGN(auto tokens, tokens_of(text, field));
  return Reader(std::move(tokens), known, source, field).read();
}

}  // namespace berth::flow
