#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suites programs and pyverbs once more, with the RDMA user space of Debian
# testing: an image that is given as NEWEST, or is newest.sqfs in the shared directory
# (tools/newest prints a directory that has one, root.sqfs).
# seconds: 1800
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

image=${NEWEST:-/mnt/share/newest.sqfs}
if [ ! -e "$image" ]; then
	skip "programs and pyverbs" "no $image"
	finish
fi
root=$TMP/root bin=$TMP/bin
mkdir "$root" "$bin"
modprobe -a loop squashfs
mount -o loop,ro "$image" "$root" || exit
for dir in dev proc sys run tmp mnt; do
	mount --rbind "/$dir" "$root/$dir" || exit
done
trap 'umount -R "$root"; rm -rf "$TMP"' EXIT

# Programs of the image, in the current directory and namespaces. By their paths: the
# directory of these scripts is in the image's /tmp, too.
for program in rping ucmatose udaddy udpong mckey cmtime rdma_{server,client,xserver,xclient} \
	rstream riostream rcopy ib_{send,write,read,atomic}_{bw,lat} python3; do
	printf '#!/bin/sh\nexec unshare -R %s -w "$PWD" /usr/bin/%s "$@"\n' "$root" "$program" \
		>"$bin/$program"
	chmod +x "$bin/$program"
done

# The cases of a suite, with numbers of their own.
suite() {
	local line number=$RESULTS
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			number=$((number + 1))
			[[ $line =~ ^((not )?ok)\ [0-9]+\ -\ (.*) ]]
			echo "${BASH_REMATCH[1]} $number - ${BASH_REMATCH[3]}"
			;;
		1..* | 'KTAP version'*) ;;
		*) echo "$line" ;;
		esac
	done < <(env PATH="$bin:$PATH" PYVERBS_TESTS="$root/usr/share/doc/rdma-core" \
		"$SELFTESTS/$1.sh") | tee "$TMP/suite"
	RESULTS=$((RESULTS + $(grep -cE '^(not )?ok ' "$TMP/suite")))
	FAILED=$((FAILED + $(grep -c '^not ok ' "$TMP/suite")))
}

echo "# $(basename "$(readlink "$root"/usr/lib/x86_64-linux-gnu/librdmacm.so.1)")"
suite programs
suite pyverbs
finish
