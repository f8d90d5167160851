#!/bin/bash
# Whether both variants answer through the proxy.
set -euo pipefail
for port in 3000 3001; do
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
  read -r status <&3
  exec 3>&-
  echo "$port: $status"
  [[ $status == *' 200 '* ]]
done
