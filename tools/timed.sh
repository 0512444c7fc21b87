#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# timed.sh TEXT COMMAND...: run a command, then say how long it took.
set -eu

text=$1
shift
start=$(date +%s)
"$@"
printf '  %4ds  %s\n' $(($(date +%s) - start)) "$text"
