#!/bin/bash
# Succeeds if both variants answer through the proxy. In the first 45 s, Redis must answer, too, because
# `docker compose up --wait` returns when the proxy is healthy. Later, the proxy stays healthy without Redis.
set -euo pipefail

first=/tmp/first-check
[[ -e $first ]] || touch "$first"
path=/readyz
(($(date +%s) - $(stat -c %Y "$first") < 45)) || path='/readyz?exclude=redis'
for port in 3000 3001; do
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.0\r\n\r\n' "$path" >&3
  read -r status <&3
  exec 3>&-
  echo "$port: $status"
  [[ $status == *' 200 '* ]]
done
