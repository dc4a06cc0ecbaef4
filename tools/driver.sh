# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Drivers for tests that are built from a changed copy of the kernel's source, once per kernel and change.
# To be sourced after env.sh.

# driver_dir NAME TITLE SOURCES OPTIONS MEND [KDIR [MAKE-ARGUMENT...]]: prints a directory with the modules that are made
# of the directories SOURCES of the kernel's drivers, each in a directory of its own and built with these OPTIONS=m. The
# files NAME.d/*.[ch] were added to the first, and MEND, which is given that directory, has changed it. For the stock
# kernel, or that kernel tree.
driver_dir() {
	local name=$1 title=$2 options mend=$5 sources kdir key dir
	read -ra sources <<<"$3"
	read -ra options <<<"$4"
	sources=("${sources[@]/#/drivers/}")
	shift 5
	if [ $# -gt 0 ]; then
		kdir=$1 && shift
	else
		kdir=$("$TOOLS/kernel" --print-kdir)
		set -- "${KERNEL_MAKE[@]}"
	fi
	# A kernel tree that was built has *.mod.c of its own.
	key=$(cd "$kdir" &&
		find "${sources[@]}" -name '*.[ch]' ! -name '*.mod.c' -o -name Makefile | sort | xargs sha256sum)
	dir=$CACHE/$name-$(hash_of "$kdir" "$key" "${options[*]}" "${mend##*/}" "$(declare -f make_driver)" \
		"$(find "$TOOLS/$name.d" -type f -exec cat {} + 2>/dev/null)")
	[ -e "$dir" ] || BUILDROOT_READONLY=$kdir with_lock "$name" step "$title" make_driver "$dir" "$@" >&2
	echo "$dir"
}

# This belongs to driver_dir(), whose variables it uses.
make_driver() {
	local dir=$1 tmp=$1.tmp source part first=$1.tmp/${sources[0]##*/}
	shift
	[ ! -e "$dir" ] || return 0
	rm -rf "$tmp"
	for source in "${sources[@]}"; do
		part=$tmp/${source##*/}
		mkdir -p "$part"
		cp "$kdir/$source"/{*.[ch],Makefile} "$part"
		rm -f "$part"/*.mod.c
		echo "obj-m += ${source##*/}/" >>"$tmp/Kbuild"
	done
	[ ! -d "$TOOLS/$name.d" ] || find "$TOOLS/$name.d" -name '*.[ch]' -exec cp -t "$first" {} +
	"$mend" "$first"
	"$TOOLS/buildroot" make -C "$kdir" "M=$tmp" "-j$(nproc)" "${options[@]/%/=m}" "$@" modules
	mv -T "$tmp" "$dir"
}

# driver NAME TITLE SOURCE OPTION MEND [KDIR [MAKE-ARGUMENT...]]: the same of one directory below drivers/infiniband/sw, and
# prints the path of NAME.ko.
driver() {
	local name=$1 source=$3 dir
	dir=$(driver_dir "$1" "$2" "infiniband/sw/$3" "$4" "${@:5}") && echo "$dir/$source/$name.ko"
}
