#!/bin/sh
# Becomes redis-server, with the configuration and the users of ../redis.conf and ../users.acl.
# Arguments are settings for redis-server (--appendfsync always): they come last and win.
#
# REDIS_IO_THREADS  how many; empty for the number that fits the machine
# REDIS_SECRETS     folder of the passwords, made here where they are absent (default /secrets)
#
# Runs as no root, on a root file system that may be read-only; needs a writable /data and /tmp.
set -eu

secrets=${REDIS_SECRETS:-/secrets}
share=${REDIS_SHARE:-/usr/local/share/onetrip}
users=${TMPDIR:-/tmp}/users.acl

# For the owner and the group, which the API belongs to, and nobody else.
umask 027

# A file with 32 random bytes as base64url, unless it has something in it.
secret() {
  if [ -s "$1" ]; then return; fi
  if ! head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' 2>/dev/null >"$1.new"; then
    echo "Cannot write $1. Its volume may be full, or of another user than $(id -u):$(id -g)." >&2
    exit 1
  fi
  mv "$1.new" "$1"
  echo "Made $1" >&2
}

sha256_of() {
  tr -d '\n' <"$1" | sha256sum | cut -d ' ' -f 1
}

# As src/io-threads.ts, which says why (a test holds them together).
io_threads() {
  cores=$(nproc)
  if [ "$cores" -lt 4 ]; then echo 1; return; fi
  if [ "$cores" -lt 6 ]; then echo 3; return; fi
  if [ "$cores" -gt 16 ]; then echo 8; else echo $((cores / 2)); fi
}

mkdir -p "$secrets/api" "$secrets/operator"
secret "$secrets/api/redis-password"
secret "$secrets/api/session-secrets"
secret "$secrets/operator/redis-password"

api=$(sha256_of "$secrets/api/redis-password")
operator=$(sha256_of "$secrets/operator/redis-password")
sed -e '/^ *#/d' -e "s/@API_PASSWORD_SHA256@/$api/" -e "s/@OPERATOR_PASSWORD_SHA256@/$operator/" \
  "$share/users.acl" |
  awk '/^user /{ if (line) print line; line = $0; next } { line = line $0 } END { print line }' \
    >"$users"

exec redis-server "$share/redis.conf" \
  --port 6379 --bind '*' '-::*' --dir /data --aclfile "$users" \
  --io-threads "${REDIS_IO_THREADS:-$(io_threads)}" "$@"
