#!/bin/sh
# Start Redis with the password that a file holds. It must not stand on a command line, which other users can read.
#
#   start.sh PASSWORD_FILE CONFIGURATION_FILE DATA_DIRECTORY [OPTION OF redis-server]...
set -eu
password_file=$1 configuration=$2 data=$3
shift 3
password=$(cat "$password_file")
if [ -z "$password" ]; then
    echo "start.sh: $password_file is empty, and a Redis without a password is open to all who reach it" >&2
    exit 1
fi
escaped=$(printf '%s' "$password" | sed 's/[\\"]/\\&/g')
umask 077
complete=${TMPDIR:-/tmp}/redis.conf
{ cat "$configuration"; printf '\ndir "%s"\nrequirepass "%s"\n' "$data" "$escaped"; } >"$complete"
exec redis-server "$complete" "$@"
