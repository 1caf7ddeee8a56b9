// The functions on which searches are measured: the field's usual ones, their optima moved off the
// middle of the space, which some methods try first.
#pragma once

#include <functional>

#include "berth/experiment/program.h"

namespace berth::bench {

struct Function {
  std::string name;
  std::vector<experiment::Parameter> params;
  /// What is to be made small, less its least value; several of them for several goals.
  std::function<std::vector<double>(const experiment::Values&)> values;
  std::vector<double> reference;  // of the hypervolume; empty: one goal
};

const std::vector<Function>& functions();

/// What the points dominate up to the reference point; all is made small. At most three goals.
double hypervolume(std::vector<std::vector<double>> points, const std::vector<double>& reference);

}  // namespace berth::bench
