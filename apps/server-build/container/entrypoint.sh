#!/bin/sh
# Becomes redis-server, with the configuration and the users of ../redis.conf and ../users.acl; as a node
# of a cluster, with those of ../cluster.conf and ../cluster.acl, too. Arguments are settings for
# redis-server (--appendfsync always): they come last and win.
#
# CLUSTER_NODE      the name of this node of a cluster; empty for a Redis that is none
# REDIS_IO_THREADS  how many; empty for the number that fits the machine
# REDIS_DATA        folder of the data (default /data); a node of a cluster takes one below, of its name
# REDIS_SECRETS     folder of the passwords, made here where they are absent (default /secrets)
#
# Runs as no root, on a root file system that may be read-only; needs a writable /data and /tmp.
set -eu

secrets=${REDIS_SECRETS:-/secrets}
share=${REDIS_SHARE:-/usr/local/share/onetrip}
users=${TMPDIR:-/tmp}/users.acl

# For the owner and the group, which the API belongs to, and nobody else.
umask 027

# A file with 32 random bytes as base64url, unless it has something in it. Of several nodes that share a
# volume and start at once, the first makes it: ln fails where there is a file, mv would not.
secret() {
  if [ -s "$1" ]; then return; fi
  if ! { new=$(mktemp "$1.XXXXXX") &&
    head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' >"$new" &&
    chmod 640 "$new"; } 2>/dev/null; then
    echo "Cannot write $1. Its volume may be full, or of another user than $(id -u):$(id -g)." >&2
    rm -f "${new:-}"
    exit 1
  fi
  if [ -e "$1" ] && [ ! -s "$1" ]; then rm -f "$1"; fi # cut short by a crash
  if ln "$new" "$1" 2>/dev/null; then echo "Made $1" >&2; fi
  if [ ! -e "$1" ]; then mv "$new" "$1"; fi # a volume without hard links
  rm -f "$new"
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
set -- --aclfile "$users" --io-threads "${REDIS_IO_THREADS:-$(io_threads)}" "$@"
templates=$share/users.acl
data=${REDIS_DATA:-/data}
replication='' cluster='' left_out=''
if [ -n "${CLUSTER_NODE:-}" ]; then
  mkdir -p "$secrets/replication" "$secrets/cluster"
  secret "$secrets/replication/redis-password"
  secret "$secrets/cluster/redis-password"
  replication=$(sha256_of "$secrets/replication/redis-password")
  cluster=$(sha256_of "$secrets/cluster/redis-password")
  templates="$templates $share/cluster.acl"
  left_out=' +config|get' # which would show the password of the user replication
  node=${TMPDIR:-/tmp}/cluster.conf
  {
    cat "$share/cluster.conf"
    echo "masteruser replication"
    echo "masterauth $(cat "$secrets/replication/redis-password")"
    # For logs. Clients get addresses, not host names: Docker takes ten seconds to say that the name of a
    # stopped container is unknown, and Node looks up two names at a time.
    echo "cluster-announce-human-nodename $CLUSTER_NODE"
  } >"$node"
  set -- --include "$node" "$@"
  data=$data/$CLUSTER_NODE # nodes may share a volume
  mkdir -p "$data"
fi

# shellcheck disable=SC2086 # the paths of templates are ours, without spaces
cat $templates | sed -e '/^ *#/d' -e "s/@API_PASSWORD_SHA256@/$api/" \
  -e "s/@OPERATOR_PASSWORD_SHA256@/$operator/" -e "s/@CLUSTER_PASSWORD_SHA256@/$cluster/" \
  -e "s/@REPLICATION_PASSWORD_SHA256@/$replication/" ${left_out:+-e "s/$left_out//"} |
  awk '/^user /{ if (line) print line; line = $0; next } { line = line $0 } END { print line }' \
    >"$users"

exec redis-server "$share/redis.conf" --port 6379 --bind '*' '-::*' --dir "$data" "$@"
