// berth report: a run, or the plan for a fleet, as one file that needs no network, to keep or to
// send.
#include "berth/base/units.h"
#include "berth/cli/commands/shared_options.h"
#include "berth/cli/options.h"
#include "berth/cli/print.h"
#include "berth/engine/fleets/fleet.h"
#include "berth/error.h"
#include "berth/render/fleets/plan_report.h"
#include "berth/render/runs/run_report.h"

namespace berth::cli {
namespace {

struct ReportOptions {
  std::string what, file, format;

  void add_to(Options& options) {
    add_run(options, what, "RUN",
            "Run, such as digits-3, or a fleet document or directory to plan");
    options
        .value("-o,--output", file,
               "Write to this file (default: standard output); .md is Markdown, any other HTML")
        .named("FILE");
    options.value("--format", format, "Write html or md (default: by the name of FILE)")
        .named("FORMAT")
        .one_of({"html", "md"});
    options.footer(
        "Examples:\n"
        "  berth report digits-3 -o digits-3.html\n"
        "  berth report digits-3 --format md | gh pr comment --body-file -\n"
        "  berth report examples/fleet -o plan.html");
  }
};

/// As `berth plan` plans it without further options.
Result<render::Document> report_of_fleet(os::Env& env, const std::string& path) {
  BERTH_ASSIGN(const auto system, engine::read_fleet(env, path, [](const auto&) {}));
  render::Document page =
      render::report_of_plan(path, system, fleet::plan(system, engine::planning_execution("")));
  page.footer =
      fmt::format("berth {}, {}. More: berth plan {}", version(), format_utc(env.wall()), path);
  return page;
}

Result<render::Document> page_of(os::Env& env, const std::string& what) {
  if (what.find('/') != std::string::npos) return report_of_fleet(env, what);
  BERTH_ASSIGN(auto context, engine::open_context(env));
  const auto record = engine::find_run(context, what);
  if (record) return render::report_of_run(context, *record);
  if (env.status(what)) return report_of_fleet(env, what);
  return std::unexpected(record.error());
}

Result<int> report(os::Env& env, const ReportOptions& options) {
  BERTH_ASSIGN(const auto page, page_of(env, options.what));
  const bool markdown =
      options.format == "md" || (options.format.empty() && options.file.ends_with(".md"));
  BERTH_TRY(print_to(env, options.file, markdown ? to_markdown(page) : to_html(page)));
  return 0;
}

}  // namespace

Command report_command() {
  return command("report", "Write a run or a plan as one page (HTML or Markdown)", report);
}

}  // namespace berth::cli
