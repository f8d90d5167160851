#!/bin/sh
# Executes redis-server with ../redis.conf and the users of ../users.acl; for a node of a cluster, also with
# ../cluster.conf and ../cluster.acl. Arguments are settings for redis-server (--appendfsync always) and take
# precedence.
#
# CLUSTER_NODE      name of this node of a cluster; empty: not a cluster
# REDIS_IO_THREADS  number of I/O threads, see io-threads.sh
# REDIS_DATA        data directory (default /data); a node of a cluster uses a subfolder with its name
# REDIS_SECRETS     folder of the passwords (default /secrets); missing passwords are generated
# EXPORTED_SERVERS  addresses that redis_exporter reads metrics from (`redis:6379`), for its file of passwords
#
# Does not need root. The root file system may be read-only; /data and /tmp must be writable.
set -eu

secrets=${REDIS_SECRETS:-/secrets}
share=${REDIS_SHARE:-/usr/local/share/onetrip}
users=${TMPDIR:-/tmp}/users.acl

# shellcheck source=password.sh
. "$(dirname "$0")/password.sh"

# Files are readable by the owner and the group, which includes the API, and by no others.
umask 027

# Writes 32 random bytes as base64url to a file, unless the file has content. If several nodes on one volume
# start at once, the first one creates the file: ln fails if the file exists; mv would replace it.
secret() {
  if [ -s "$1" ]; then return; fi
  if ! { new=$(mktemp "$1.XXXXXX") &&
    head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n' >"$new" &&
    chmod 640 "$new"; } 2>/dev/null; then
    echo "Cannot write $1. The volume may be full or owned by another user than $(id -u):$(id -g)." >&2
    rm -f "${new:-}"
    exit 1
  fi
  if [ -e "$1" ] && [ ! -s "$1" ]; then rm -f "$1"; fi # left empty by a crash
  if ln "$new" "$1" 2>/dev/null; then echo "Created $1" >&2; fi
  if [ ! -e "$1" ]; then mv "$new" "$1"; fi # the volume does not support hard links
  rm -f "$new"
}

sha256_of() {
  password=$(password_in "$1") || exit 1
  printf %s "$password" | sha256sum | cut -d ' ' -f 1
}

mkdir -p "$secrets/api" "$secrets/operator" "$secrets/exporter"
secret "$secrets/api/redis-password"
secret "$secrets/api/session-secrets"
secret "$secrets/operator/redis-password"
secret "$secrets/exporter/redis-password"

api=$(sha256_of "$secrets/api/redis-password")
operator=$(sha256_of "$secrets/operator/redis-password")
exporter=$(sha256_of "$secrets/exporter/redis-password")
if [ -n "${EXPORTED_SERVERS:-}" ]; then
  # redis_exporter reads passwords from a JSON object with the URL of each server.
  password=$(password_in "$secrets/exporter/redis-password" | sed 's/[\\"]/\\&/g')
  comma=''
  {
    for server in $EXPORTED_SERVERS; do
      printf '%s"redis://exporter@%s": "%s"' "${comma:-{ }" "$server" "$password"
      comma=', '
    done
    echo ' }'
  } >"$secrets/exporter/passwords.json"
fi
threads=$(sh "$(dirname "$0")/io-threads.sh")
set -- --aclfile "$users" --io-threads "$threads" "$@"
templates=$share/users.acl
data=${REDIS_DATA:-/data}
replication='' cluster='' left_out=''
if [ -n "${CLUSTER_NODE:-}" ]; then
  mkdir -p "$secrets/replication" "$secrets/cluster"
  secret "$secrets/replication/redis-password"
  secret "$secrets/cluster/redis-password"
  replication=$(sha256_of "$secrets/replication/redis-password")
  cluster=$(sha256_of "$secrets/cluster/redis-password")
  replication_password=$(password_in "$secrets/replication/redis-password")
  templates="$templates $share/cluster.acl"
  left_out=' +config|get' # which would show the password of the user replication
  node=${TMPDIR:-/tmp}/cluster.conf
  {
    cat "$share/cluster.conf"
    echo "masteruser replication"
    printf 'masterauth %s\n' "$replication_password"
    # For logs only. Clients get addresses instead of host names: for the name of a stopped container, Docker's
    # DNS needs ten seconds to answer, and Node looks up only two names at a time.
    echo "cluster-announce-human-nodename $CLUSTER_NODE"
  } >"$node"
  set -- --include "$node" "$@"
  data=$data/$CLUSTER_NODE # nodes may share a volume
  mkdir -p "$data"
fi

# shellcheck disable=SC2086 # the paths of templates are ours, without spaces
cat $templates | sed -e '/^ *#/d' -e "s/@API_PASSWORD_SHA256@/$api/" \
  -e "s/@OPERATOR_PASSWORD_SHA256@/$operator/" -e "s/@EXPORTER_PASSWORD_SHA256@/$exporter/" \
  -e "s/@CLUSTER_PASSWORD_SHA256@/$cluster/" \
  -e "s/@REPLICATION_PASSWORD_SHA256@/$replication/" ${left_out:+-e "s/$left_out//"} |
  awk '/^user /{ if (line) print line; line = $0; next } { line = line $0 } END { print line }' \
    >"$users"

exec redis-server "$share/redis.conf" --port 6379 --bind '*' '-::*' --dir "$data" "$@"
