#!/bin/sh
# Whether Redis answers and can write: with a full disk it refuses PING, too. As the user `operator`.
# The password goes by the environment, since arguments are for everybody to read.
set -eu
REDISCLI_AUTH=$(cat "${REDIS_SECRETS:-/secrets}/operator/redis-password")
export REDISCLI_AUTH
answer=$(redis-cli -t 2 --user operator --no-auth-warning ping)
echo "$answer"
[ "$answer" = PONG ]
