#!/bin/sh
# Writes a backup of a running Redis to standard output: a tar file with its append-only files.
#
#   sh backup.sh [data directory] >backup.tar     default: /data
#
# Restore: unpack it into an empty data directory, and start Redis on that. docs/maintenance.md has the drill.
#
# Needs no permissions in Redis and does not stop it. Hard links the files of the manifest first, because a
# rewrite may remove them while they are read; links take no time and no space. Redis only appends to these
# files, so a backup contains all writes before its start, and perhaps some later ones.
set -eu

data=${1:-/data}
name=appendonly.aof.manifest
manifest=$data/appendonlydir/$name
snapshot=$data/backup.$$

if [ ! -f "$manifest" ]; then
  echo "$manifest does not exist: is $data the data directory of a Redis with 'appendonly yes'?" >&2
  exit 1
fi
trap 'rm -rf "$snapshot"' EXIT
trap 'exit 1' HUP INT TERM

# Links the files of the manifest. Fails if a rewrite has removed one since the manifest was read.
link() {
  rm -rf "$snapshot"
  mkdir -p "$snapshot/appendonlydir"
  cp "$manifest" "$snapshot/appendonlydir/$name"
  # file <name> seq <number> type <b: base, i: increment, h: to be removed>
  awk '$6 != "h" { print $2 }' "$snapshot/appendonlydir/$name" >"$snapshot/files"
  while read -r file; do
    ln "$data/appendonlydir/$file" "$snapshot/appendonlydir/$file" 2>/dev/null || return 1
  done <"$snapshot/files"
}

attempt=1
until link; do
  if [ "$attempt" -ge 20 ]; then
    echo "Gave up after $attempt attempts: each time a rewrite removed files, or $data has no space for links." >&2
    exit 1
  fi
  attempt=$((attempt + 1))
  sleep 0.2
done

# 1: a file grew while it was read.
tar -C "$snapshot" -cf - appendonlydir || [ $? -eq 1 ]
