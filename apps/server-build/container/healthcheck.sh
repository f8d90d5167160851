#!/bin/bash
# Succeeds if Redis answers and can write: with a full disk, Redis rejects even PING. Logs in as `operator`.
#
# HEALTHY_AFTER  services with /readyz (`api:3000 api-naive:3000`). In the first 45 s, each running container
#                of these services must be ready, too: `docker compose up --wait` returns when Redis is
#                healthy, and running APIs must have reconnected to the new Redis by then.
set -euo pipefail

# The password is passed in the environment, because every user can read arguments.
# shellcheck source=password.sh
. "$(dirname "$0")/password.sh"
REDISCLI_AUTH=$(password_in "${REDIS_SECRETS:-/secrets}/operator/redis-password")
export REDISCLI_AUTH
answer=$(redis-cli -t 2 --user operator --no-auth-warning ping)
echo "$answer"
[[ $answer == PONG ]]

# Succeeds if every running container of a service answers /readyz with 200, or if none runs.
ready() {
  local host=${1%:*} port=${1#*:} address status
  # Docker may forward the name of a stopped service to the host's DNS, which takes seconds.
  for address in $(timeout 1 getent ahostsv4 "$host" | awk '$2 == "STREAM" { print $1 }'); do
    # shellcheck disable=SC2016 # for the inner shell
    status=$(timeout 1 bash -c 'exec 3<>"/dev/tcp/$0/$1"
      printf "GET /readyz HTTP/1.0\r\n\r\n" >&3
      head -n 1 <&3' "$address" "$port" 2>/dev/null) || true
    if [[ $status != *' 200 '* ]]; then
      echo "waiting for $host at $address: ${status:-no answer}"
      return 1
    fi
  done
}

first=${TMPDIR:-/tmp}/first-answer
[[ -e $first ]] || touch "$first"
# Only for 45 s: a broken API must not make Redis unhealthy.
if (($(date +%s) - $(stat -c %Y "$first") < 45)); then
  for service in ${HEALTHY_AFTER:-}; do ready "$service"; done
fi
