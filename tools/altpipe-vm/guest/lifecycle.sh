#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# lifecycle.sh MODULE COUNT: the module's life cycle, in the test machine, as
# KTAP. What rmmod says is not believed; what the kernel shows is.

module=$1
count=$2

loaded() { grep -q '^altpipe ' /proc/modules; }

load() {
	insmod "$module" && loaded && [ -c /dev/altpipe ] && grep -qw altpipefs /proc/filesystems &&
		[ -d /sys/class/misc/altpipe/knobs ]
}

unload() { rmmod altpipe 2>/dev/null; ! loaded; }

nothing_left() {
	! { [ -e /dev/altpipe ] || [ -e /sys/class/misc/altpipe ] || [ -e /sys/module/altpipe ] ||
		grep -qw altpipefs /proc/filesystems || grep -q altpipe /proc/slabinfo; }
}

# use: pipes carry data and go away again.
use() { altpipe-selftests --config '' --filter "$1" >/dev/null; }

refused_while_open() {
	load || return
	exec 4</dev/altpipe
	! unload
	refused=$?
	exec 4<&-
	[ $refused -eq 0 ] && unload
}

removed_after_use() { load && use stream && unload && nothing_left; }

loaded_twice() {
	load && ! insmod "$module" 2>/dev/null && loaded && unload
}

reloads() {
	i=0
	while [ $i -lt "$count" ]; do
		i=$((i + 1))
		if ! { load && unload && nothing_left; }; then
			echo "# broken at reload $i"
			return 1
		fi
	done
}

echo 'KTAP version 1'
echo '1..4'
number=0
check() {
	number=$((number + 1))
	name=$1
	shift
	if "$@"; then echo "ok $number $name"; else echo "not ok $number $name"; fi
}
check removal_is_refused_while_the_device_is_open refused_while_open
check nothing_is_left_after_use removed_after_use
check a_second_load_is_refused loaded_twice
check "reloads_$count" reloads
