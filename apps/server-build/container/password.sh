# Read by entrypoint.sh and healthcheck.sh.
# shellcheck shell=sh

# Prints the password in a file without white space at its ends, like src/users.ts and the API
# (apps/api/src/secret-file.ts): an editor may add a line break. Fails if there is no password, because the hash of
# an empty one would let in everyone.
password_in() {
  if ! password=$(cat "$1"); then
    echo "Cannot read the password in $1. The file must be readable for $(id -u):$(id -g)." >&2
    return 1
  fi
  password=${password#"${password%%[![:space:]]*}"}
  password=${password%"${password##*[![:space:]]}"}
  if [ -z "$password" ]; then
    echo "$1 contains no password. Write one into it, or remove it: the next start creates another." >&2
    return 1
  fi
  printf %s "$password"
}
