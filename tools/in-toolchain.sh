#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# in-toolchain.sh COMMAND...: run a command with the compilers of Debian 13, in
# the same working directory. On Debian 12 that is a chroot in which the
# checkout, the cache and cargo's home have the paths they have outside.
set -eu

here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=toolchain.sh
. "$here/toolchain.sh"

if [ $# -eq 0 ]; then
	echo "usage: $0 COMMAND..." >&2
	exit 2
fi

# Not the caller's PATH: a rustup or ccache in front must not come between.
PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
[ -n "$chroot" ] || exec "$@"

if [ ! -d "$chroot" ]; then
	echo "altpipe: the tool chain is not there yet; run tools/bootstrap.sh" >&2
	exit 1
fi
case $PWD/ in
"$top"/* | "$cache"/*) ;;
*)
	echo "altpipe: the tool chain sees $top and $cache only; change into one of them" >&2
	exit 1
	;;
esac
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
mkdir -p "$CARGO_HOME"
export PATH CARGO_HOME

# The mounts live in a namespace of this command and vanish with it, however it
# ends. Certificates and resolver are the host's, which knows its own network.
# shellcheck disable=SC2016 # expanded by the inner shell
exec unshare --mount --propagation private sh -euc '
	root=$1
	cwd=$2
	shift 2
	while [ "$1" != -- ]; do
		if [ -d "$1" ]; then mkdir -p "$root$1"; fi
		if [ -e "$1" ] && [ -e "$root$1" ]; then mount --rbind "$1" "$root$1"; fi
		shift
	done
	shift
	exec chroot "$root" sh -c '\''cd "$1" && shift && exec "$@"'\'' sh "$cwd" "$@"
' sh "$chroot" "$PWD" /proc /dev /etc/resolv.conf /etc/ssl/certs "$top" "$cache" "$CARGO_HOME" -- "$@"
