#include "berth/flow/pattern.h"

#include <algorithm>

#include "berth/fileset/fileset.h"

namespace berth::flow {
namespace {

struct PatternToken {
  enum class Kind { literal, one, star, stars, part };
  Kind kind = Kind::literal;
  std::string_view text;  // of `one` the expression, of `part` the name
};

std::size_t end_of_name(std::string_view pattern, std::size_t open) {
  const auto end = pattern.find_first_of("{}/", open + 1);
  return end != std::string_view::npos && end > open + 1 && pattern[end] == '}' ? end : open;
}

std::vector<PatternToken> pattern_tokens(std::string_view pattern) {
  using TokenKind = PatternToken::Kind;
  std::vector<PatternToken> tokens;
  for (std::size_t at = 0; at < pattern.size();) {
    PatternToken token{TokenKind::literal, pattern.substr(at, 1)};
    if (const auto end = pattern[at] == '{' ? end_of_name(pattern, at) : at; end > at) {
      token = {TokenKind::part, pattern.substr(at + 1, end - at - 1)};
      at = end + 1;
      tokens.push_back(token);
      continue;
    }
    if (pattern[at] == '[') {
      const auto first = at + 1 + (pattern.substr(at + 1).starts_with('!') ? 1 : 0);
      if (const auto end = pattern.find(']', first + 1); end != std::string_view::npos)
        token = {TokenKind::one, pattern.substr(at, end + 1 - at)};
    } else if (pattern[at] == '?') {
      token.kind = TokenKind::one;
    } else if (pattern.substr(at).starts_with("**")) {
      // "**/" is any number of folders, none too.
      token = {TokenKind::stars, pattern.substr(at, pattern.substr(at).starts_with("**/") ? 3 : 2)};
    } else if (pattern[at] == '*') {
      token.kind = TokenKind::star;
    }
    at += token.text.size();
    tokens.push_back(token);
  }
  return tokens;
}

/// Finds the first division of the path, longest parts first.
class Division {
 public:
  Division(std::string_view pattern, std::string_view path)
      : tokens_(pattern_tokens(pattern)),
        path_(path),
        fails_((tokens_.size() + 1) * (path.size() + 1), false) {
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        repeats_ = repeats_ || (tokens_[i].kind == PatternToken::Kind::part &&
                                tokens_[j].kind == PatternToken::Kind::part &&
                                tokens_[i].text == tokens_[j].text);
  }

  std::optional<Parts> find() {
    if (!fits(0, 0)) return std::nullopt;
    return Parts(parts_.begin(), parts_.end());
  }

 private:
  bool fits(std::size_t token, std::size_t at) {
    if (token == tokens_.size()) return at == path_.size();
    // Where no name comes twice, what failed here once always will.
    const std::size_t here = token * (path_.size() + 1) + at;
    if (fails_[here]) return false;
    const bool good = tries(token, at);
    if (!good && !repeats_) fails_[here] = true;
    return good;
  }

  bool tries(std::size_t token, std::size_t at) {
    using TokenKind = PatternToken::Kind;
    const auto& [kind, text] = tokens_[token];
    const auto rest = path_.substr(at);
    switch (kind) {
      case TokenKind::literal: return rest.starts_with(text) && fits(token + 1, at + 1);
      case TokenKind::one:
        return !rest.empty() && rest[0] != '/' && fileset::matches(text, rest.substr(0, 1)) &&
               fits(token + 1, at + 1);
      case TokenKind::stars:
        for (std::size_t length = rest.size() + 1; length-- > 0;)
          if ((length == 0 || text.size() == 2 || rest[length - 1] == '/') &&
              fits(token + 1, at + length))
            return true;
        return false;
      case TokenKind::star:
        for (std::size_t length = std::min(rest.find('/'), rest.size()) + 1; length-- > 0;)
          if (fits(token + 1, at + length)) return true;
        return false;
      case TokenKind::part: return takes_part(token, at);
    }
    return false;
  }

  bool takes_part(std::size_t token, std::size_t at) {
    const auto name = tokens_[token].text;
    const auto rest = path_.substr(at);
    const auto known = std::ranges::find(parts_, name, &Part::first);
    if (known != parts_.end())
      return rest.starts_with(known->second) && fits(token + 1, at + known->second.size());
    for (std::size_t length = std::min(rest.find('/'), rest.size()); length > 0; --length) {
      parts_.emplace_back(name, rest.substr(0, length));
      if (fits(token + 1, at + length)) return true;
      parts_.pop_back();
    }
    return false;
  }

  using Part = std::pair<std::string_view, std::string_view>;
  const std::vector<PatternToken> tokens_;
  const std::string_view path_;
  std::vector<bool> fails_;
  bool repeats_ = false;
  std::vector<Part> parts_;
};

}  // namespace

std::string glob_of(std::string_view pattern) {
  std::string glob;
  for (const auto& token : pattern_tokens(pattern))
    if (token.kind == PatternToken::Kind::part)
      glob += '*';
    else
      glob += token.text;
  return glob;
}

std::optional<Parts> parts_of(std::string_view pattern, std::string_view path) {
  if (!fileset::matches(glob_of(pattern), path)) return std::nullopt;
  return Division(pattern, path).find();
}

}  // namespace berth::flow
