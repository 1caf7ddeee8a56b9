#!/usr/bin/env bash
# install-quietly.sh PACKAGE…: installs Debian packages, as root, without any service of theirs being
# started or enabled, and without a database cluster: tests start servers of their own. What was enabled
# before stays so.
set -euo pipefail

# The links that enable units, for they are there without a systemd too, as in a container.
enabled() { find /etc/systemd/system -type l -path '*.wants/*' 2>/dev/null | sort; }

policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.conf
made=()
trap 'rm -f "${made[@]}"' EXIT
if [ ! -e "$policy" ]; then
  made+=("$policy")
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
if [ ! -e "$clusters" ]; then
  mkdir -p "$(dirname "$clusters")"
  echo 'create_main_cluster = false' >"$clusters"
fi

before=$(enabled)
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o Dpkg::Options::=--force-confold "$@" >&2
for link in $(comm -13 <(echo "$before") <(enabled)); do
  # Timers and sockets of the base system come with packages too; only servers are meant.
  unit=${link##*/}
  case $unit in
    ssh.service | ssh.socket | slurm*.service | munge.service | postgresql*.service)
      deb-systemd-helper disable "$unit" >/dev/null ;;
  esac
done
