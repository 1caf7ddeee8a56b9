#include <algorithm>

#include "berth/experiment/proposers/halving.h"

namespace berth::experiment {

std::int64_t expected_tasks(const Program& program) {
  const Search& search = program.search;
  if (!adaptive(search)) return 0;
  std::int64_t tasks = search.samples;
  if (search.method == Search::Method::pbt) {
    tasks *= std::ssize(levels(*search.budget));
  } else if (search.budget) {
    std::int64_t promoted = search.samples;
    for (std::size_t level = 1; level < levels(*search.budget).size(); ++level) {
      promoted = std::max<std::int64_t>(promoted / search.budget->reduction, 1);
      tasks += promoted;
    }
  }
  return tasks + (program.save_best ? 1 : 0);
}

}  // namespace berth::experiment
