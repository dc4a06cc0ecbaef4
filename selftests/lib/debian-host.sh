# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# A host with Debian, for scripts that try the packages on it without booting it: a copy of tools/debroot with the files of
# the kernel that the sysroot has. To be sourced as ". debian-host.sh NAME [ARGUMENT...]" with the arguments of the script,
# whose last is the directory with the packages. The script then runs once more in a mount namespace, which takes the
# mounts along when it ends. Sets work, root, debs, release and modules.

# shellcheck source=tools/env.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tools/env.sh"
set +e

host_name=$1 && shift
debs=$(cd "${*: -1}" && pwd) || exit
if [ -z "${HOST_INSIDE:-}" ]; then
	work=$(mktemp -d "$CACHE/$host_name-XXXXXX")
	trap 'remove_tree "$work"' EXIT
	debroot=$("$TOOLS/debroot") && sysroot=$("$TOOLS/sysroot") || exit
	export HOST_INSIDE=$work HOST_DEBROOT=$debroot HOST_SYSROOT=$sysroot
	ns_root "$0" "$@"
	exit
fi

work=$HOST_INSIDE root=$work/root release=$(<"$HOST_SYSROOT/release")
modules=$root/usr/lib/modules/$release
mkdir -p "$root" "$work/upper" "$work/tmp"
mount -t overlay -o "lowerdir=$HOST_DEBROOT,upperdir=$work/upper,workdir=$work/tmp" none "$root" || exit
mkdir -p "$modules"
cp -P "$HOST_SYSROOT/root/lib/modules/$release"/{modules.*,build} "$modules"

in_root() {
	BUILDROOT_ROOT=$root BUILDROOT_BIND="$debs $work" "$TOOLS/buildroot" "$@"
}

# shellcheck source=selftests/lib/host-cases.sh
. "$REPO/selftests/lib/host-cases.sh"
output=$work/log

# check NAME COMMAND...
check() {
	local name=$1
	shift
	"$@" >"$output" 2>&1
	result $? "$name"
}
