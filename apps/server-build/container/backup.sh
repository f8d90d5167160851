#!/bin/sh
# Writes a backup of a running Redis to standard output: a tar file with its append-only files.
#
#   sh backup.sh [data directory] >backup.tar     default: /data
#
# Restore: unpack it into an empty data directory, and start Redis on that. docs/maintenance.md has the drill.
#
# Needs no permission in Redis, and does not stop it. It links the files that the manifest names, which takes
# no time and no space: a rewrite may replace them while they are read. Redis only appends to them, so a
# backup has all that was written before it began, and perhaps some of what came later.
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

# Links what the manifest names. Fails if a rewrite has removed one of the files since the manifest was read.
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
    echo "A rewrite removed files in each of $attempt attempts, or $data has no room for links." >&2
    exit 1
  fi
  attempt=$((attempt + 1))
  sleep 0.2
done

# 1: a file grew while it was read.
tar -C "$snapshot" -cf - appendonlydir || [ $? -eq 1 ]
