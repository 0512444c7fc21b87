#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check-kdir.sh OBJTREE RUSTC: can the module be built against this kernel tree
# with this compiler? If not, says why and what to do, in one sentence, and
# fails. Called from rust/Kbuild, where `make KDIR=` and `make -C` both pass.
set -eu

tree=$1
rustc=$2
oldest=7.3
default='run make without KDIR for the kernel this project sets up'

refuse() {
	echo "altpipe: $1"
	exit 1
}

# setting NAME: its value in the tree's config, without quotes.
setting() {
	sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" "$tree/include/config/auto.conf" 2>/dev/null
}

release=$(cat "$tree/include/config/kernel.release" 2>/dev/null) ||
	refuse "$tree is not prepared: run 'make modules_prepare' in it, or $default."

major=${release%%.*}
minor=${release#*.}
minor=${minor%%[!0-9]*}
if [ "$major" -lt "${oldest%.*}" ] || { [ "$major" -eq "${oldest%.*}" ] && [ "$minor" -lt "${oldest#*.}" ]; }; then
	refuse "$tree is Linux $release, and the module needs $oldest or newer: build it for a newer kernel, or $default."
fi

[ "$(setting CONFIG_RUST)" = y ] ||
	refuse "$tree was configured without CONFIG_RUST: enable it (its menu says what is lacking) and rebuild that kernel, or $default."

for file in core kernel; do
	[ -e "$tree/rust/lib$file.rmeta" ] ||
		refuse "$tree lacks the Rust metadata (rust/lib$file.rmeta), as headers packages do: run 'make modules_prepare' in the source of that very kernel and use it as KDIR, or $default."
done

prepared=$(setting CONFIG_RUSTC_VERSION_TEXT)
ours=$("$rustc" --version 2>/dev/null) || ours="none that runs ('$rustc')"
[ "$prepared" = "$ours" ] ||
	refuse "$tree was prepared by $prepared but the compiler here is $ours: put the former first on the PATH or pass RUSTC=, or $default."
