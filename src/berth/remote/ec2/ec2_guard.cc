#include "berth/remote/ec2/ec2_instances.h"

namespace berth::remote {
namespace {

std::int64_t seconds(Duration lease) {
  return std::chrono::duration_cast<std::chrono::seconds>(lease).count();
}

// The time is that since the boot, which nobody sets. The new one replaces the old at one instant,
// so that the guard never reads half a number.
constexpr const char* kRenew =
    "read up rest </proc/uptime && echo $((${{up%.*}} + {})) >/run/berth/.until && "
    "mv -f /run/berth/.until /run/berth/until";

constexpr const char* kGuard = R"(#!/bin/sh
# Berth: this machine ends itself when no run has renewed its lease.
umask 022
cat >/etc/berth-lease <<'END'
#!/bin/sh
mkdir -p /run/berth
chmod 777 /run/berth
read up rest </proc/uptime
echo $((${{up%.*}} + {})) >/run/berth/until
while sleep 2; do
  read up rest </proc/uptime
  read until </run/berth/until || continue
  [ "${{up%.*}}" -lt "$until" ] || shutdown -P now
done
END
chmod 755 /etc/berth-lease
)";

// For good: it has to be there after a reboot too.
constexpr std::string_view kStays = R"(if [ -d /run/systemd/system ]; then
  cat >/etc/systemd/system/berth-lease.service <<'END'
[Service]
ExecStart=/etc/berth-lease
Restart=always
[Install]
WantedBy=multi-user.target
END
  systemctl daemon-reload
  systemctl enable --now berth-lease.service
else
  setsid /etc/berth-lease </dev/null >/dev/null 2>&1 &
fi
)";

// Until it is shut down: a person who starts it later is left alone.
constexpr std::string_view kOnce = R"(systemctl is-active --quiet berth-lease && exit 0
[ -d /run/systemd/system ] && systemd-run --unit=berth-lease /etc/berth-lease && exit 0
setsid /etc/berth-lease </dev/null >/dev/null 2>&1 &
)";

}  // namespace

std::string guard_script(Duration lease, bool stays) {
  return fmt::format(fmt::runtime(kGuard), seconds(lease)).append(stays ? kStays : kOnce);
}

std::vector<std::string> renewal_command(Duration lease) {
  return {"/bin/sh", "-c", fmt::format(fmt::runtime(kRenew), seconds(lease))};
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string to;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i)
      word = word << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      to += at + i <= bytes.size() ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return to;
}

}  // namespace berth::remote
