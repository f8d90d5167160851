#!/bin/bash
# Whether Redis answers and can write: with a full disk it refuses PING, too. As the user `operator`.
#
# HEALTHY_AFTER  services with /readyz (`api:3000 api-naive:3000`). In the first 45 s, each container of
#                them that runs must be ready, too: `docker compose up --wait` returns when Redis is
#                healthy, and an API that ran before has to connect to the new Redis first.
set -euo pipefail

# The password goes by the environment, since arguments are for everybody to read.
REDISCLI_AUTH=$(cat "${REDIS_SECRETS:-/secrets}/operator/redis-password")
export REDISCLI_AUTH
answer=$(redis-cli -t 2 --user operator --no-auth-warning ping)
echo "$answer"
[[ $answer == PONG ]]

# Whether every container of a service answers /readyz with 200; true if none runs.
ready() {
  local host=${1%:*} port=${1#*:} address status
  # The name of a service that does not run may go to the name servers of the host, for seconds.
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
# Not longer: a broken API must not keep Redis from being healthy.
if (($(date +%s) - $(stat -c %Y "$first") < 45)); then
  for service in ${HEALTHY_AFTER:-}; do ready "$service"; done
fi
