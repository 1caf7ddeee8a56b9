// How berth fit shows what it found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/fleet/fit.h"

namespace berth::cli {

/// A fit of one model on one accelerator, and what was held out of it.
struct ShownFit {
  std::string model, accelerator;
  std::size_t iterations = 0, points = 0;
  fleet::Fit fit;
  std::optional<fleet::Held> held;
};

std::string fit_text(const ShownFit& shown, bool check);
/// {"version":1,"fits":[{"model","accelerator","perfParms":{…},"standardErrors":{…},…}]}.
std::string fits_json(const std::vector<ShownFit>& fits);

}  // namespace berth::cli
