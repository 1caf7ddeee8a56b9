// What EC2 answers, and what a person's file of credentials holds, is read or refused; instances
// that are read have ids and addresses that may stand in a command.
#include "berth/remote/ec2/ec2_api.h"
#include "berth/remote/ec2/ec2_settings.h"
#include "fuzz.h"

void berth::fuzz(std::string_view text) {
  (void)remote::read_credentials(text, "default");
  const auto xml = remote::read_xml(text);
  if (!xml) return;
  (void)remote::read_interrupted(*xml);
  const auto page = remote::read_instances(*xml);
  if (!page) return;
  for (const auto& instance : page->instances) {
    BERTH_ASSERT(remote::valid_instance_id(instance.id));
    BERTH_ASSERT(!instance.address.starts_with('-'));
    BERTH_ASSERT(instance.address.find_first_of(" '\"$`;|&@\n") == std::string::npos);
  }
}
