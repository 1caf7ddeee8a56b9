// The trials of an experiment as a table, CSV, and charts.
#pragma once

#include <string>
#include <vector>

#include "berth/engine/queries/queries.h"
#include "berth/render/document.h"
#include "berth/render/table.h"

namespace berth::render {

/// A table of at most `most` rows (0: all of them). Under several goals a star marks each trial of
/// the front.
Table trials_table(const engine::Order& trials, const experiment::Program& program,
                   std::size_t most);
/// CSV with a line for each trial and the names of --json as its columns:
/// task,state,…,params.lr,…,metrics.loss,…. An apostrophe precedes text that a spreadsheet would
/// run as a formula, unless `raw`.
std::string trials_csv(const store::RunRecord& run, const engine::Order& trials, bool raw);
/// The finite scores of the finished trials by trial number, and the line of the best so far. The
/// program has a goal.
Plot history_plot(const std::vector<store::TaskRecord>& tasks, const experiment::Program& program);
/// The learning curves, a line each. The program has a goal.
Plot curves_plot(const std::vector<engine::Curve>& curves, const experiment::Program& program);
/// history_plot() as text: the finished trials' scores by trial number, at most 80 columns wide; ""
/// with fewer than three of them. With many, the worst quarter may lie beyond the edge, where it is
/// drawn.
std::string score_chart(const std::vector<store::TaskRecord>& tasks,
                        const experiment::Program& program);
/// The finished trials' scores by the value of a parameter: along an axis (logarithmic where the
/// values span two powers of ten) or, where they are no numbers, in a strip each. "" with fewer
/// than three of them.
std::string scatter_chart(const std::vector<store::TaskRecord>& tasks,
                          const experiment::Program& program, const std::string& parameter);
/// curves_plot() as text: at most nine learning curves, the leading trial first; "" where none has
/// two reports.
std::string curve_chart(const std::vector<engine::Curve>& curves,
                        const experiment::Program& program);

}  // namespace berth::render
