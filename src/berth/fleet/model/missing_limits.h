// Notes on the limits of a replica that a model's entry leaves out: maxBatchSize and atTokens. They
// decide how many replicas a plan has, and the defaults are rarely right.
//
// Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "berth/fleet/fleet.h"

namespace berth::fleet {

/// Collects what is missing, and writes one note for all entries that lack the same.
class MissingLimits {
 public:
  /// What a plan assumes instead.
  enum class Assumed : std::uint8_t {
    one_request,  // a replica serves one request at a time
    any_length    // the memory of a replica has no limit
  };

  void add(const std::string& model, const std::string& accelerator, const Performance& performance,
           Assumed assumed);
  std::vector<std::string> notes() const;

 private:
  using Lacking = std::tuple<Assumed, bool, bool>;  // without maxBatchSize, without atTokens
  std::map<Lacking, std::vector<std::string>> entries_;
};

/// The notes on entries that the servers of the system are planned with. Empty if nothing that
/// matters is missing.
std::vector<std::string> notes_on_missing_limits(const System& system);
/// What a plan of the system assumes on an entry of its models, whether a server uses it or not.
/// nullopt: nothing that matters is missing.
std::optional<MissingLimits::Assumed> assumed_for_entry(const System& system,
                                                        const std::string& model,
                                                        const std::string& accelerator);

/// "llm on A100, llm on H100 and 3 more": the first entries by name, and the number of others.
std::string listed_entries(std::vector<std::string> entries);

}  // namespace berth::fleet
