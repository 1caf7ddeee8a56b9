// Unbegun remembers attempts that ended before they began, and the attempt that each of them waited
// for (Launch::behind). A runner may name such an attempt in a launch before it has heard of its
// end; the new launch then waits for what the ended one waited for. Pure.
#pragma once

#include <map>

#include "berth/base/ids.h"

namespace berth::exec {

class Unbegun {
 public:
  void add(Token token, Token behind) { behind_[token] = behind; }
  /// The attempt that a launch waits for which names `behind`; 0: it waits for none.
  Token resolve(Token behind) const {
    for (auto at = behind_.find(behind); at != behind_.end(); at = behind_.find(behind))
      behind = at->second;
    return behind;
  }
  /// Forgets everything: nothing runs any more that a launch could wait for.
  void clear() { behind_.clear(); }

 private:
  std::map<Token, Token> behind_;
};

}  // namespace berth::exec
