// Which sampler a search has: what its method says, or, by `auto`, what suits it. Pure.
#pragma once

#include "berth/experiment/proposers/sampler.h"

namespace berth::experiment {

/// The method that `auto` comes to; `automatic` itself means gp first, then cma-es. Any other
/// method is what it is.
Search::Method chosen_method(const Program& program);
/// Which method that is and why, as a note for the person who left it open.
std::string why_chosen(const Program& program);

/// The sampler of a search; null: of a method that is none.
std::unique_ptr<Sampler> make_sampler(const Program& program);

}  // namespace berth::experiment
