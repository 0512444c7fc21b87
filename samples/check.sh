#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Runs the samples, which lie beside this script, and looks at what they say. Needs
# the module and, on the PATH, the tool. KTAP version 1.
set -u
here=$(dirname "$0")
number=0
failed=0

# Runs a command, which must exit with a status and print lines that match each of
# the patterns given on standard input.
expect() {
	name=$1
	status=$2
	shift 2
	number=$((number + 1))
	verdict=ok
	output=$("$@" 2>&1)
	got=$?
	if [ "$got" -ne "$status" ]; then
		echo "# exit status $got"
		verdict="not ok"
	fi
	while read -r pattern; do
		if ! printf '%s\n' "$output" | grep -q "$pattern"; then
			echo "# lacks $pattern"
			verdict="not ok"
		fi
	done
	if [ "$verdict" != ok ]; then
		printf '%s\n' "$output" | sed 's/^/# /'
		failed=$((failed + 1))
	fi
	echo "$verdict $number $name"
}

knobs() {
	cat /sys/class/misc/altpipe/knobs/*
}

echo "KTAP version 1"
echo "1..6"
before=$(knobs)

expect "own-pipe makes a default pipe" 0 "$here/own-pipe" <<'EOF'
^config: v7.3$
^read:   30 bytes of 30$
^counts: 2 writes, 1 merges, 1 reads, 0 tail locks, 0 time updates$
EOF
expect "own-pipe makes a pipe by its own config" 0 "$here/own-pipe" tail_update=wait_lock,times=full <<'EOF'
^config: v7.3,times=full,tail_update=wait_lock$
^counts: 2 writes, 1 merges, 1 reads, 1 tail locks, 3 time updates$
EOF
expect "own-pipe says which config was refused" 1 "$here/own-pipe" tail_update=spin_lock <<'EOF'
^own-pipe: tail_update=spin_lock: Invalid argument$
EOF
expect "with-knobs.sh turns knobs for a command and shows the counts" 0 \
	"$here/with-knobs.sh" times=mtime exclusive=0 -- "$here/own-pipe" <<'EOF'
^config: v7.3,times=mtime,exclusive=0$
^pipes_created  *1$
^time_updates  *2$
EOF
expect "with-knobs.sh hands on the command's status" 7 "$here/with-knobs.sh" times=full -- sh -c 'exit 7' </dev/null
expect "with-knobs.sh turns the knobs back" 0 test "$before" = "$(knobs)" </dev/null

exit "$((failed > 0))"
