#!/bin/sh
# Prints how many I/O threads Redis uses, with its main thread; 1: off. The one rule, for containers and npm start.
#
# REDIS_IO_THREADS  from 1 to 128; empty: half of the cores, at least 2, at most 4
set -eu

threads=${REDIS_IO_THREADS:-}
if [ -z "$threads" ]; then
  threads=$(($(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) / 2))
  if [ "$threads" -lt 2 ]; then threads=2; fi
  if [ "$threads" -gt 4 ]; then threads=4; fi
fi
case $threads in
  [1-9] | [1-9][0-9] | 1[01][0-9] | 12[0-8]) echo "$threads" ;;
  *)
    echo "REDIS_IO_THREADS is \"$threads\": it must be a whole number from 1 (off) to 128." >&2
    exit 1
    ;;
esac
