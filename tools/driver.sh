# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Drivers for tests that are built from a changed copy of the kernel's source, once per kernel and change.
# To be sourced after env.sh.

# driver_dir NAME TITLE SOURCES OPTIONS MEND [KDIR [MAKE-ARGUMENT...]]: prints a directory with the modules that are made
# of the kernel's directories SOURCES, each in a directory of its own, with these OPTIONS: "CONFIG_A=m", or "CONFIG_A=y",
# which the source is told as the kernel's configuration tells it. The files NAME.d/*.[ch] were added to the first, and
# MEND, which is given that directory, has changed it. For the stock kernel, or that kernel tree.
driver_dir() {
	local name=$1 title=$2 options mend=$5 sources kdir key dir
	read -ra sources <<<"$3"
	read -ra options <<<"$4"
	shift 5
	if [ $# -gt 0 ]; then
		kdir=$1 && shift
	else
		kdir=$("$TOOLS/kernel" --print-kdir) || return
		set -- "${KERNEL_MAKE[@]}"
	fi
	key=$(cd "$kdir" && source_files "${sources[@]}" | xargs sha256sum) || return
	dir=$CACHE/$name-$(hash_of "$kdir" "$key" "${options[*]}" "${mend##*/}" "$(declare -f make_driver source_files)" \
		"$(find "$TOOLS/$name.d" -type f -exec cat {} + 2>/dev/null)")
	[ -e "$dir" ] || BUILDROOT_READONLY=$kdir with_lock "$name" step "$title" make_driver "$dir" "$@" >&2 || return
	echo "$dir"
}

# source_files DIRECTORY...: a kernel tree that was built has others beside them.
source_files() {
	find "$@" -type f \( -name '*.[ch]' ! -name '*.mod.c' ! -name '*.asn1.[ch]' -o -name Makefile -o -name '*.asn1' -o \
		-name 'gen_*' \) | LC_ALL=C sort
}

# This belongs to driver_dir(), whose variables it uses. Its callers test its status, so that errexit does not count in it.
make_driver() {
	local dir=$1 tmp=$1.tmp source part first=$1.tmp/${sources[0]##*/} option defines=''
	shift
	[ ! -e "$dir" ] || return 0
	rm -rf "$tmp" || return
	for source in "${sources[@]}"; do
		part=$tmp/${source##*/}
		mkdir -p "$part" && (cd "$kdir/$source" && source_files . | xargs cp --parents -t "$part") || return
		echo "obj-m += ${source##*/}/" >>"$tmp/Kbuild"
	done
	if [ -d "$TOOLS/$name.d" ]; then
		find "$TOOLS/$name.d" -name '*.[ch]' -exec cp -t "$first" {} + || return
	fi
	for option in "${options[@]}"; do
		[[ $option != *=y ]] || defines+=" -D${option%=y}=1"
	done
	"$mend" "$first" &&
		"$TOOLS/buildroot" make -C "$kdir" "M=$tmp" "-j$(nproc)" "${options[@]}" "KCFLAGS=$defines" "$@" modules &&
		mv -T "$tmp" "$dir"
}

# driver NAME TITLE SOURCE OPTION MEND [KDIR [MAKE-ARGUMENT...]]: the same of one directory below drivers/infiniband/sw, and
# prints the path of NAME.ko.
driver() {
	local name=$1 source=$3 dir
	dir=$(driver_dir "$1" "$2" "drivers/infiniband/sw/$3" "$4=m" "${@:5}") && echo "$dir/$source/$name.ko"
}
