// What Slurm's commands print: read or refused, with amounts that can be counted with; a time that
// is read is written as one that reads the same.
#include "berth/remote/slurm/slurm_text.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  if (const auto nodes = remote::read_slurm_nodes(text))
    for (const auto& each : *nodes)
      BERTH_ASSERT(each.cpus >= 0 && each.mem >= 0 && each.disk >= 0 && !each.partition.empty());
  if (const auto partitions = remote::read_slurm_partitions(text))
    for (const auto& each : *partitions)
      BERTH_ASSERT(!each.name.empty() && each.nodes >= each.down && each.total.covers(each.free));
  if (const auto jobs = remote::read_slurm_jobs(text))
    for (const auto& each : *jobs) {
      BERTH_ASSERT(each.cpus >= 0 && each.mem >= 0);
      (void)remote::phase_of(each);
    }
  if (const auto id = remote::read_slurm_job_id(text)) BERTH_ASSERT(*id > 0);
  if (const auto time = remote::read_slurm_time(text); time && *time)
    BERTH_ASSERT(remote::read_slurm_time(remote::slurm_time(**time)).value() == **time);
  const auto name = remote::slurm_name(text);
  BERTH_ASSERT(name.empty() || remote::plain_slurm_word(name));
  (void)remote::trouble_of(text);
  (void)remote::gist_of(text);
}
