#!/usr/bin/env bash
# install-quietly.sh PACKAGE…: installs Debian packages, as root, without any service of theirs being
# started or enabled, and without a database cluster: tests start servers of their own. What was enabled
# before stays so.
set -euo pipefail

# The links that enable units and name them anew: they are there without a systemd too.
links() { find /etc/systemd/system -type l 2>/dev/null | sort; }

policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.conf
log=$(mktemp)
made=("$log")
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

before=$(links)
{
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Options::=--force-confold "$@"
} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
for link in $(comm -13 <(echo "$before") <(links)); do
  # Timers and sockets of the base system come with packages too; only servers are meant.
  case $(basename "$(readlink "$link")") in
    ssh.service | ssh.socket | slurm*.service | munge.service | postgresql*.service) rm -f "$link" ;;
  esac
done
