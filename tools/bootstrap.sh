#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Brings a bare Debian 12 or 13 to where the tools and the module can be built:
# packages, and the tool chain of Debian 13. Does only what is missing, may be
# interrupted and repeated, and may run twice at once. Run as root.
set -eu

here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=toolchain.sh
. "$here/toolchain.sh"
log=$cache/bootstrap.log

# step TEXT COMMAND...: run quietly; say what it was and how long it took.
step() {
	text=$1
	shift
	start=$(date +%s)
	echo "  ..     $text"
	if ! "$@" >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		echo "altpipe: failed: $text (its output is above and in $log)" >&2
		exit 1
	fi
	printf '  %4ds  %s\n' $(($(date +%s) - start)) "$text"
}

missing_packages() {
	for package in $host_packages; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || :
		[ "$status" = installed ] || printf '%s ' "$package"
	done
}

install_packages() {
	# A broken source of somebody else's must not stop us: what counts is
	# whether the packages can be had.
	apt-get update -q || :
	export DEBIAN_FRONTEND=noninteractive
	# What an interrupted run may have left half done.
	dpkg --configure -a
	# shellcheck disable=SC2086 # a list of words
	apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 $1
}

# The mirror this host uses for Debian itself, in whatever format its sources are.
mirror() {
	# shellcheck disable=SC2016 # apt expands it
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		"Codename: $VERSION_CODENAME" 'Component: main' 'Label: Debian' 2>/dev/null | head -n 1
}

# One list for mmdebstrap and for the kernel's download, so that the host's own
# sources are read here and nowhere else, and are never changed. They may name
# another mirror today than they did yesterday.
write_sources() {
	uri=$(mirror)
	if [ -z "$uri" ]; then
		[ ! -e "$cache/sources.list" ] || return 0
		apt-get update -q || :
		uri=$(mirror)
	fi
	if [ -z "$uri" ]; then
		echo "altpipe: no Debian mirror for $VERSION_CODENAME in apt's sources; add one and run this again" >&2
		return 1
	fi
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	for suite in trixie trixie-backports; do
		echo "deb [signed-by=$keyring] $uri $suite main"
	done >"$cache/sources.list.new"
	mv "$cache/sources.list.new" "$cache/sources.list"
}

make_chroot() {
	rm -rf --one-file-system "$chroot".new
	head -n 1 "$cache/sources.list" >"$cache/trixie.list"
	mmdebstrap --variant=minbase \
		--include="$(echo "$toolchain_packages" | tr '\n ' ,,)" \
		trixie "$chroot.new" "$cache/trixie.list"
	mv "$chroot.new" "$chroot"
}

mkdir -p "$cache"
# The lock is held by whatever we start, too: should we be killed, the next run
# waits until the orphan is done instead of working beside it.
exec 9>"$cache/bootstrap.lock"
flock -n 9 || {
	echo "  ..     waiting for what another bootstrap.sh has begun"
	flock 9
}

missing=$(missing_packages)
if [ -n "$missing" ] || { [ -n "$chroot" ] && [ ! -d "$chroot" ]; }; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "altpipe: set-up installs packages; run it as root" >&2
		exit 1
	fi
fi
[ -z "$missing" ] || step "packages: $missing" install_packages "$missing"
write_sources
[ -z "$chroot" ] || [ -d "$chroot" ] || step "Debian 13 tool chain" make_chroot
