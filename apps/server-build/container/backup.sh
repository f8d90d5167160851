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

# Links the files of the manifest. Fails if a rewrite has removed one since the manifest was read. Other errors
# end the script: explicitly, because `set -e` has no effect in the condition of a loop.
link() {
  rm -rf "$snapshot"
  mkdir -p "$snapshot/appendonlydir" || exit 1
  cp "$manifest" "$snapshot/appendonlydir/$name" || exit 1
  # file <name> seq <number> type <b: base, i: increment, h: to be removed>
  files=$(awk '$6 != "h" { print $2 }' "$snapshot/appendonlydir/$name") || exit 1
  if [ -z "$files" ]; then
    echo "$manifest lists no files, so the backup would be empty." >&2
    exit 1
  fi
  for file in $files; do
    ln "$data/appendonlydir/$file" "$snapshot/appendonlydir/$file" 2>/dev/null || return 1
  done
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

# GNU tar exits with 1 if a file grew while it was read; other versions of tar exit with 1 only after errors.
tar -C "$snapshot" -cf - appendonlydir || { [ $? -eq 1 ] && tar --version | grep -q GNU; }
