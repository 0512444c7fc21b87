#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a command with some knobs turned, shows what its pipes counted, and turns
# the knobs back, also after Ctrl-C:
#
#	with-knobs.sh tail_update=wait_lock exclusive=0 -- altpipe bench self --variants default
#
# The command must make its pipes by /dev/altpipe and take the defaults. Others who
# do so meanwhile get the turned knobs, too, and are counted with it.
set -eu

sysfs=/sys/class/misc/altpipe

if [ ! -d "$sysfs" ]; then
	echo "with-knobs.sh: altpipe is not loaded" >&2
	exit 3
fi

# A knob of words shows all of them and brackets the active one.
active() {
	sed 's/.*\[\(.*\)\].*/\1/' "$sysfs/knobs/$1"
}

turned=
back=
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
	turned="$turned $1"
	back="$back ${1%%=*}=$(active "${1%%=*}")"
	shift
done
if [ "$#" -lt 2 ] || [ -z "$turned" ]; then
	echo "usage: with-knobs.sh KNOB=VALUE... -- COMMAND [ARGUMENT...]" >&2
	exit 2
fi
shift

# Knobs and values hold no blanks, so the lists may be split.
# shellcheck disable=SC2086
trap 'altpipe set $back >/dev/null' EXIT
trap 'exit 130' INT TERM

# shellcheck disable=SC2086
altpipe set $turned
echo 1 >"$sysfs/stats/reset"

status=0
"$@" || status=$?

for counter in "$sysfs"/stats/*; do
	name=${counter##*/}
	if [ "$name" != reset ] && [ "$(cat "$counter")" != 0 ]; then
		printf '%-16s %s\n' "$name" "$(cat "$counter")"
	fi
done
exit "$status"
