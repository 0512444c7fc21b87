#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Process 1 of the test machine (busybox). /vm holds what the host wants done:
# altpipe.ko, if the module is to be loaded, and `command`; without a command
# the machine is for a person, on the console. With a /disk, both work in what the
# first NVMe disk holds, where our programs and the host's files have the same places.
#
# Ports to the host: 1 standard output, 2 standard error, 3 the protocol of
# src/protocol.rs; results are /out as a cpio archive.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
ip link set lo up
hostname altpipe

export PATH=/usr/local/bin:/bin HOME=/root TERM=linux

root=/
if [ -e /disk ]; then
	until [ -b /dev/nvme0n1 ]; do usleep 10000; done
	mount -t ext4 -o noatime /dev/nvme0n1 /disk
	mkdir -p /disk/in /disk/out /disk/vm
	for folder in dev proc sys in out vm usr/local/bin; do
		mount -o rbind "/$folder" "/disk/$folder"
	done
	mount -t tmpfs -o mode=1777 tmpfs /disk/tmp
	root=/disk
	PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
fi

# How many bytes port $1 was given.
sent() {
	sed -n 's/^bytes_sent: //p' "/sys/kernel/debug/virtio-ports/vport0p$1"
}

load() {
	[ -e /vm/altpipe.ko ] || return 0
	insmod /vm/altpipe.ko
}

if [ ! -e /vm/command ]; then
	load
	echo "altpipe test machine: 'reboot -f' or Ctrl-A x ends it"
	setsid cttyhack chroot "$root" sh -l
	reboot -f
fi

# The first memory cgroup has the kernel patch its code, and so would each later first
# one. A processor that QEMU emulates was seen to run into a breakpoint of that. So there
# is one from now on, while the machine may still be tried again.
mkdir -p /sys/fs/cgroup
if mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; then
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/first
fi

# The ports appear a moment after their driver.
until [ -c /dev/vport0p3 ]; do usleep 10000; done
exec 3<>/dev/vport0p3
echo booted >&3
if load 2>/dev/vport0p2; then
	chroot "$root" sh /vm/command 3>&- </dev/null >/dev/vport0p1 2>/dev/vport0p2
	status=$?
	(cd /out && find . | cpio -o -H newc >/vm/results 2>/dev/null)
	echo "status $status $(sent 1) $(sent 2) $(wc -c </vm/results)" >&3
	cat /vm/results >&3
else
	echo "no module $(sent 1) $(sent 2)" >&3
fi
# The host answers when it has everything. A port does not wait for it.
read -r _ <&3
reboot -f
