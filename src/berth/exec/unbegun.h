// Attempts that ended before they began, and what each of them stood behind (Launch::behind):
// whoever names one stands there. Who launches does not know yet that it has gone. Pure.
#pragma once

#include <map>

#include "berth/base/ids.h"

namespace berth::exec {

class Unbegun {
 public:
  void add(Token token, Token behind) { behind_[token] = behind; }
  /// Behind which this one stands that names `behind`; 0: nothing.
  Token resolve(Token behind) const {
    for (auto at = behind_.find(behind); at != behind_.end(); at = behind_.find(behind))
      behind = at->second;
    return behind;
  }
  /// Nothing runs that could be waited for.
  void clear() { behind_.clear(); }

 private:
  std::map<Token, Token> behind_;
};

}  // namespace berth::exec
