# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # sourced: its variables are for, and `here` from, the others
#
# Where things are. Sourced, with `here` set to this directory, by bootstrap.sh,
# in-toolchain.sh and cargo.sh, so that the three agree.

top=$(cd "$here/.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/altpipe

# The distribution kernel's Rust symbols carry a hash of the compiler, so the
# module must be built by the very rustc that Debian 13 used; clang serves
# bindgen, and with lld and llvm the kernels that gcc cannot build with Rust.
toolchain_packages='bc bindgen bison build-essential ca-certificates cargo
clang-19 cpio flex gcc-14 kmod libclang-19-dev libelf-dev libssl-dev lld-19
llvm-19 pahole perl python3 rsync rust-clippy rust-src rustc rustfmt shellcheck
xz-utils zstd'

host_packages='ca-certificates debian-archive-keyring e2fsprogs gcc libc6-dev make
mmdebstrap qemu-system-x86 util-linux'

VERSION_ID='' VERSION_CODENAME=''
[ ! -r /etc/os-release ] || . /etc/os-release

# A Debian 13 host is the tool chain; on Debian 12 it is a chroot in the cache,
# named by what it holds so that two checkouts with different lists get on.
case $VERSION_ID in
13)
	chroot=''
	host_packages="$host_packages $toolchain_packages"
	;;
12)
	chroot=$cache/toolchain-$(printf '%s' "$toolchain_packages" | cksum | cut -d' ' -f1)
	host_packages="$host_packages mount"
	;;
*)
	echo "altpipe: set-up knows Debian 12 and 13, not ${PRETTY_NAME:-this system};" \
		"with a prepared kernel tree of your own use: make KDIR=<tree> modules" >&2
	exit 1
	;;
esac
