#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/dkms.sh [--build] DIR: on the host, that the package for DKMS in DIR (tools/deb) builds the module where the
# source of the kernel is there, and else puts the build off and says so. The host is a copy of tools/debroot with the
# files of the kernel that the sysroot has. With --build the module is built, which takes some minutes.
#
# shellcheck disable=SC2016,SC2317 # dpkg's own variables; functions that "check" runs
set -uo pipefail

# shellcheck source=selftests/lib/debian-host.sh
. "$(dirname "$0")/lib/debian-host.sh" dkms "$@"

build=''
[ "$1" != --build ] || build=1
series=$(cut -d . -f 1,2 <<<"$release")
version_here=${release%%+*}-2 version_before=${release%%+*}-1
# The files that the packages of the kernel have.
for dir in "$HOST_SYSROOT"/root/usr/src/linux-headers-* "$HOST_SYSROOT"/root/usr/lib/linux-kbuild-*; do
	mkdir -p "$root${dir#"$HOST_SYSROOT/root"}"
	mount --bind "$dir" "$root${dir#"$HOST_SYSROOT/root"}" || exit
done
ln -s "$HOST_SYSROOT/root/lib/modules/$release/kernel" "$modules/kernel"

# package NAME VERSION [FILE]: installs a package that has no file, or one of /usr/src, which is in the sysroot.
package() {
	local dir=$work/package-$1
	rm -rf "$dir"
	# dpkg forgets a package without a file of its own.
	mkdir -p "$dir/DEBIAN" "$dir/usr/src" "$dir/usr/share/doc/$1" && : >"$dir/usr/share/doc/$1/copyright"
	printf '%s: %s\n' Package "$1" Version "$2" Architecture all Maintainer nobody Description "stands for $1" \
		>"$dir/DEBIAN/control"
	[ -z "${3:-}" ] || ln -s "$HOST_SYSROOT/root/usr/src/$3" "$dir/usr/src/$3"
	dpkg-deb -b "$dir" "$dir.deb" >/dev/null && in_root dpkg -i "$dir.deb"
}

# says_put_off COMMAND...: it succeeds, and says in one line that the build is put off, and why.
says_put_off() {
	local why=$1
	shift
	"$@" >"$work/out" 2>&1
	local status=$?
	cat "$work/out"
	[ "$status" -eq 0 ] && [ "$(grep -c "^rust-rdma-cm: the build for $release is put off: $why\$" "$work/out")" -eq 1 ] &&
		! grep -qi 'error' "$work/out" && is_installed rust-rdma-cm-dkms && [ ! -e "$modules/updates" ]
}

is_installed() {
	[ "$(in_root dpkg-query -f '${db:Status-Abbrev}' -W "$1")" = "ii " ]
}

with_headers() {
	package "linux-headers-$release" $version_here &&
		in_root dpkg -i --force-depends "$debs"/rdma-cm_*.deb "$debs"/rust-rdma-cm-dkms_*.deb
}
check "without the source of the kernel the build is put off, in one line" \
	says_put_off "it needs linux-source-$series of version $version_here, and none is installed" with_headers
# shellcheck source=selftests/lib/quotes.sh
. "$REPO/selftests/lib/quotes.sh"
PAGES=$REPO/Documentation QUOTE=$work/quote VARIES='s/[67]\.[0-9]+(\.[0-9]+-2)?/V/g'
grep '^rust-rdma-cm: ' "$work/out" >"$QUOTE"
check "and it is the line of the page" on_page put-off
sed 's/^/# quote put-off| /' "$QUOTE"
check "with that of another version, too" \
	says_put_off "it needs linux-source-$series of version $version_here, and $version_before is installed" \
	package "linux-source-$series" $version_before

other_kernel() {
	local out
	mkdir -p "$root/usr/lib/modules/6.12.1/build/include" && : >"$root/usr/lib/modules/6.12.1/build/.config" || return
	out=$(in_root dkms build rust-rdma-cm/"$(version)" -k 6.12.1 2>&1)
	[ $? -eq 77 ] || { echo "$out" && return 1; }
	rm -r "$root/usr/lib/modules/6.12.1"
}
version() {
	in_root dpkg-query -f '${Version}' -W rust-rdma-cm-dkms
}
check "a kernel that the module does not know is left out" other_kernel

# other_compiler NAME TEXT COMMAND...: meanwhile the kernel was built with that.
other_compiler() {
	local config=$root/usr/src/linux-headers-$release/.config status=0
	sed "s/^CONFIG_$1_VERSION_TEXT=.*/CONFIG_$1_VERSION_TEXT=\"$2\"/" "$config" >"$work/config" &&
		mount --bind "$work/config" "$config" || return
	"${@:3}" || status=$?
	umount "$config" && return "$status"
}
check "without the compiler of the kernel's C code, too" \
	other_compiler CC "x86_64-linux-gnu-gcc-99 (Debian 99.1.0-1) 99.1.0" \
	says_put_off "it needs x86_64-linux-gnu-gcc-99, with which the kernel was built" \
	package "linux-source-$series" $version_here
check "with another rustc than the kernel's, too" other_compiler RUSTC "rustc 1.99.0 (0123456 2027-01-01)" \
	says_put_off "it needs rustc 1.99.0, with which the kernel was built, and rustc [0-9.]* is installed" \
	package "linux-source-$series" $version_here

built() {
	local file
	package "linux-source-$series" $version_here "linux-source-$series.tar.xz" || return
	cat "$root"/var/lib/dkms/rust-rdma-cm/*/build/make.log 2>/dev/null
	# DKMS compresses it as the kernel's own are.
	file=$(ls "$modules"/updates/dkms/rust_rdma_cm.ko*) || return
	in_root modinfo "${file#"$root"}" >"$work/modinfo" && cat "$work/modinfo" || return
	grep -q "^vermagic: *$release " "$work/modinfo" && grep -q '^sig_id: *PKCS#7' "$work/modinfo" &&
		grep -q '^signer: *DKMS module signing key' "$work/modinfo" && grep -q '^commit: *[0-9a-f]' "$work/modinfo" &&
		! grep -q 'symbol:.* rust_rdma_cm' <<<"$(in_root depmod -n "$release")" &&
		[ -z "$(ls -d "$root"/var/lib/dkms/rust-rdma-cm/*/build/kernel 2>/dev/null)" ]
}
removed() {
	in_root dpkg -P rust-rdma-cm-dkms && [ -z "$(ls "$modules"/updates/dkms 2>/dev/null)" ] &&
		[ ! -e "$root/usr/src/rust-rdma-cm-$1" ] && [ ! -e "$root/var/lib/dkms/rust-rdma-cm" ]
}
if [ -n "$build" ]; then
	check "when the source comes, the module is built, signed and installed" built
fi
check "purge leaves nothing" removed "$(version)"
echo "1..$n"
exit "$failed"
