#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/walkthrough.sh DIR: on the host, a new user follows Documentation/walkthrough.rst in a guest with Debian and
# systemd (tools/walkthrough), with the packages in DIR (tools/deb).
#
# Each part of the page is a boot, with the kernel and the initramfs that the guest has installed by then. The guest types what
# the page quotes, and has to print the same, but for numbers that differ from run to run. "..." is a place where apt tells
# what it does. The quotes are printed, for "tools/checks/troubleshooting --take".
#
# shellcheck disable=SC2317 # functions that "check" runs
set -uo pipefail

# shellcheck source=tools/env.sh
. "$(dirname "$0")/../tools/env.sh"
set +e

debs=("$(cd "$1" && pwd)") || exit
work=$(mktemp -d "$CACHE/walkthrough-run-XXXXXX")
trap 'rm -rf "$work"' EXIT
output=$work/output
PAGES=$REPO/Documentation QUOTE=$work/quote
# shellcheck source=selftests/lib/host-cases.sh
. "$REPO/selftests/lib/host-cases.sh"
# shellcheck source=selftests/lib/quotes.sh
. "$REPO/selftests/lib/quotes.sh"

check() {
	local name=$1
	shift
	"$@" >"$output" 2>&1
	result $? "$name"
}

image=$("$TOOLS/walkthrough")
case $? in
0) ;;
77)
	echo "ok 1 - walkthrough # SKIP the guest's system is not in the cache, and the archive cannot be reached"
	echo "1..1"
	exit
	;;
*) exit 1 ;;
esac
mapfile -t releases <"$image/releases"
parts=(install use back gone)
# Scripts of sed for what else differs from run to run.
version='s/^version: [0-9.]+$/version/'
declare -A varies=(
	[use]="$version;"' s/^(rxe0\/1 [tr]x-msgs [a-z]+) [0-9]+$/\1 N/; s/^(rxe0\/1 [a-z]+ [0-9]+) [0-9.]+ [mu]?s .*/\1 TIMES/
		s/established AGE [0-9]+ AGE$/established/; s/^ ?2 AGE AGE [0-9]+ AGE .*/2/; s/^ ?(1000 [a-z_]+) [0-9]+ /\1 N /
		s/[0-9]+ \(rping\)/N (rping)/g'
	[back]=$version
)

# The module for the older kernel, which is built in a copy: this tree has that of one.
older_package() {
	local copy
	copy=$CACHE/older-$(hash_of "$REPO")
	debs+=("$work/older")
	mkdir "$work/older" && copy_sources "$copy" || return
	GIT_DIR=$(git -C "$REPO" rev-parse --absolute-git-dir) KDIR='' RUST_RDMA_CM_SERIES='' RUST_RDMA_CM_RELEASE=${releases[0]} \
		"$copy/tools/deb" "$work/older"
}
if [ "${#releases[@]}" -gt 1 ]; then
	check "the module for ${releases[0]}, too" older_package
else
	n=$((n + 1))
	echo "ok $n - the kernel is upgraded from 7.2 # SKIP there is no sysroot for it (RUST_RDMA_CM_SERIES=7.2 tools/sysroot)"
fi

# in_disk REQUEST...: debugfs does that with the file system.
in_disk() {
	BUILDROOT_BIND="${debs[*]}" "$TOOLS/debroot" debugfs -w -f - "$work/root/disk.img" < <(printf '%s\n' "$@") 2>&1
}

# Debian with the packages in the user's home, and somebody who types what the page says.
prepare() {
	local dir file requests=("write $REPO/selftests/lib/newcomer.sh /home/user/.newcomer")
	mkdir "$work/root" && cp --sparse=always "$image/disk.img" "$work/root/disk.img" || return
	for dir in "${debs[@]}"; do
		for file in "$dir"/rdma-cm_*.deb "$dir"/rust-rdma-cm-modules-*.deb; do
			[ ! -e "$file" ] || requests+=("write $file /home/user/${file##*/}")
		done
	done
	in_disk "${requests[@]}"
	in_disk "stat /home/user/.newcomer" | grep -q 'Type: regular'
}
check "a guest with the packages" prepare

# takes_from_disk LINK FILE: what the link in the root directory leads to, as a boot loader does.
take_from_disk() {
	local path
	path=$(in_disk "stat /$1" | sed -n 's/^Fast link dest: "\(.*\)"/\1/p')
	in_disk "dump /$path $work/root/$1"
	[ -s "$work/root/$1" ]
}

# part NAME: the guest boots, and prints what the page quotes.
part() {
	local status
	quote_on_page "walkthrough-$1" | sed -n 's/^\$ //p' >"$work/commands"
	[ -s "$work/commands" ] && take_from_disk vmlinuz && take_from_disk initrd.img || return
	in_disk "rm /home/user/.commands" "write $work/commands /home/user/.commands" >/dev/null
	"$TOOLS/guest" --cm none --link "$work/link:1" --root "$work/root" --timeout $((SECONDS_EACH * ${GUEST_LANES:-1})) \
		--log "$work/log" --append "root=LABEL=host rw systemd.show_status=0" -- true >"$QUOTE" 2>"$work/errors"
	status=$?
	sed -i -E "/$BY_CHANCE/d" "$QUOTE"
	tail -n 15 "$work/log"
	cat "$work/errors"
	if [ "$status" -ne 0 ]; then
		cat "$QUOTE"
		rm "$QUOTE"
		return 1
	fi
	on_page "walkthrough-$1"
}

SECONDS_EACH=600
for name in "${parts[@]}"; do
	VARIES=${varies[$name]:-}
	check "$name" part "$name"
	[ ! -e "$QUOTE" ] || sed "s/^/# quote walkthrough-$name| /" "$QUOTE"
	[ -e "$QUOTE" ] || break
	[ "$name" != install ] || [ "${#releases[@]}" -eq 1 ] ||
		in_disk "rm /srv/now" "symlink /srv/now ${releases[1]}" >/dev/null
done
echo "1..$n"
exit "$failed"
