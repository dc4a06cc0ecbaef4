#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/pairs/two-guests.sh [--capture DIR] [--programs IMAGE] [--file FILE] [--disk FILE] [--end NAME] [CM [CM]]:
# on the host, two guests with different connection managers (rust and c), joined by a network, are each
# other's client and server, as NAME-end.sh here says (two-guests). With --capture what
# passes between them is in DIR/NAME.pcap afterwards. With --programs they run those of this
# file system (tools/newest, tools/storage). They find a copy of a file, and have a disk.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
guest=$here/../../tools/guest
capture='' image='' file='' disk='' name=two-guests
while [[ ${1:-} == --* ]]; do
	case $1 in
	--capture) capture=$2 ;;
	--programs) image=$2 ;;
	--file) file=$2 ;;
	--disk) disk=$2 ;;
	--end) name=$2 ;;
	*) exit 2 ;;
	esac
	shift 2
done
# Prints the script's remarks on its guests.
said() {
	sed -n "s/^# $1: //p" "$here/$name-end.sh"
}
[ -x "$here/$name-end.sh" ] || {
	echo "two-guests.sh: no such end: $name" >&2
	exit 2
}
# Beside other guests (tools/check) these take longer.
seconds=$(($(said seconds) * ${GUEST_LANES:-1})) && read -ra options <<<"$(said guest)" || exit
one=${1:-rust} two=${2:-c}
tmp=$(mktemp -d)
pids=()
trap '[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
mkdir "$tmp/share"
[ -z "$image" ] || cp "$image" "$tmp/share/programs.sqfs" || exit
[ -z "$file" ] || cp "$file" "$tmp/share" || exit

# boot NUMBER CM: its lines get the name of its connection manager.
boot() {
	local status=0
	"$guest" --cm "$2" --link "$tmp/link:$1" "${options[@]}" --share "$tmp/share" ${disk:+--disk "$disk"} \
		--timeout "$seconds" -- "/mnt/repo/selftests/pairs/$name-end.sh" "$1" "$one" "$two" ${capture:+capture} \
		>"$tmp/$1.out" 2>&1 || status=$?
	echo "$status" >"$tmp/$1.status"
}
boot 1 "$one" &
pids+=($!)
boot 2 "$two" &
pids+=($!)
wait "${pids[@]}"
pids=()

failed=0 n=0
for number in 1 2; do
	cm=$one
	[ "$number" = 1 ] || cm=$two
	status=$(cat "$tmp/$number.status")
	sed -n -E "/^(not )?ok |^#/{s/^((not )?ok) [0-9]+ - /\1 - $name: guest $number ($cm): /;p}" \
		"$tmp/$number.out"
	n=$((n + $(grep -cE '^(not )?ok ' "$tmp/$number.out")))
	if grep -q '^not ok ' "$tmp/$number.out"; then
		failed=1
	elif [ "$status" -ne 0 ] || ! grep -q '^1\.\.[1-9]' "$tmp/$number.out"; then
		tail -n 40 "$tmp/$number.out" | sed 's/^/# | /'
		echo "not ok - $name: guest $number ($cm): status $status"
		failed=1
	fi
done
if [ -n "$capture" ]; then
	mkdir -p "$capture"
	cp "$tmp/share/$name.pcap" "$capture/" || failed=1
fi
exit "$failed"
