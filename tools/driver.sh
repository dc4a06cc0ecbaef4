# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Drivers for tests that are built from a changed copy of the kernel's source, once per kernel and change.
# To be sourced after env.sh.

# driver NAME TITLE SOURCE OPTION MEND [KDIR [MAKE-ARGUMENT...]]: prints the path of NAME.ko, which is made of the
# kernel's drivers/infiniband/SOURCE, built with CONFIG_OPTION=m, after the files NAME.d/*.[ch] were added and
# MEND has changed the directory that it is given. For the stock kernel, or that kernel tree.
driver() {
	local name=$1 title=$2 source=drivers/infiniband/$3 option=$4 mend=$5 kdir key dir
	shift 5
	if [ $# -gt 0 ]; then
		kdir=$1 && shift
	else
		kdir=$("$TOOLS/kernel" --print-kdir)
		set -- "${KERNEL_MAKE[@]}"
	fi
	# A kernel tree that was built has *.mod.c of its own.
	key=$(cd "$kdir/$source" &&
		find . -name '*.[ch]' ! -name '*.mod.c' -o -name Makefile | sort | xargs sha256sum)
	dir=$CACHE/$name-$(hash_of "$kdir" "$key" "${mend##*/}" "$(declare -f make_driver)" "$(cat "$TOOLS/$name.d"/*)")
	[ -e "$dir" ] || BUILDROOT_READONLY=$kdir with_lock "$name" step "$title" make_driver "$dir" "$@" >&2
	echo "$dir/$name.ko"
}

# This belongs to driver(), whose variables it uses.
make_driver() {
	local dir=$1 tmp=$1.tmp
	shift
	[ ! -e "$dir" ] || return 0
	rm -rf "$tmp"
	mkdir "$tmp"
	cp "$kdir/$source"/{*.[ch],Makefile} "$tmp"
	rm -f "$tmp"/*.mod.c
	find "$TOOLS/$name.d" -name '*.[ch]' -exec cp -t "$tmp" {} +
	"$mend" "$tmp"
	"$TOOLS/buildroot" make -C "$kdir" "M=$tmp" "-j$(nproc)" "CONFIG_$option=m" "$@" modules
	mv -T "$tmp" "$dir"
}
