#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# cargo.sh ARGUMENTS...: the first cargo on the PATH if it is new enough for the
# tools (rust-version in Cargo.toml), else the one of the Debian 13 tool chain.
set -eu

here=$(dirname "$0")
version=$(cargo --version 2>/dev/null) || version=
minor=${version#cargo 1.}
minor=${minor%%.*}
case $minor in
'' | *[!0-9]*) ;;
*) [ "$minor" -lt 85 ] || exec cargo "$@" ;;
esac
exec "$here/in-toolchain.sh" cargo "$@"
