#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# preload.sh [DESTINATION]: builds the library that `altpipe run` preloads, and
# puts it beside the release programs or where it is told.
set -eu

cd "$(dirname "$0")"
target=x86_64-unknown-linux-gnu
name=libaltpipe_preload.so

# The workspace's programs are static; this is loaded into programs that are not,
# so it gets other flags, and a folder of its own lest the two throw out each
# other's work. Nothing in it unwinds, and what it does not use is left out.
RUSTFLAGS='-C target-feature=-crt-static -C link-arg=-Wl,-z,now' \
	CARGO_PROFILE_RELEASE_PANIC=abort CARGO_PROFILE_RELEASE_LTO=fat \
	CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_STRIP=true \
	./cargo.sh rustc --release --target-dir target/preload --target $target \
	--package altpipe-preload --lib --crate-type cdylib --features interpose

# In one step: somebody may be running it.
to=${1:-target/$target/release}
mkdir -p "$to"
cp "target/preload/$target/release/$name" "$to/$name.new"
mv "$to/$name.new" "$to/$name"
