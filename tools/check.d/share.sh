# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The contents of the directory that the guests of tools/check share: test programs and modules,
# each made when the first step needs it, and once for all steps. To be sourced after tools/env.sh
# and selftests/lib/suites.sh; "work", "share" and "kernel" are set.

# need PART...: these are in the share.
need() {
	local part
	mkdir -p "$share"
	for part; do
		(
			flock 9
			[ ! -e "$work/made-$part" ] || exit 0
			rm -rf "$work/making-$part"
			mkdir "$work/making-$part"
			"make_$part" "$work/making-$part" >&2 9>&- || exit
			: >"$work/made-$part"
		) 9>"$work/lock-$part" || {
			echo "$part, which the guest needs, cannot be made"
			return 1
		}
	done
}

# program DIR OUT: what its makefile makes.
program() {
	BUILDROOT_BIND=$share "$TOOLS/buildroot" make -s -C "$1" CC="$MACHINE-linux-gnu-gcc" OUT="$2"
}

make_conformance() {
	program "$REPO/selftests/abi" "$share/ucma_conformance"
}

make_walk() {
	program "$REPO/selftests/walk" "$share"
}

make_hostile() {
	program "$REPO/selftests/hostile" "$share/hostile"
}

make_reuseport() {
	program "$REPO/selftests/reuseport" "$share/reuseport"
}

make_storm() {
	program "$REPO/selftests/trouble" "$share/storm"
}

make_cmstorm() {
	program "$TOOLS/cmstorm" "$share/cmstorm"
}

make_admin() {
	local tool
	tool=$("$TOOLS/rdma-cm/build") && cp "$tool" "$share/rdma-cm"
}

# The examples of the documentation, with the header as it is installed.
make_examples() {
	local dir=$share/examples
	make -s -C "$REPO" headers_install INSTALL_HDR_PATH="$dir" &&
		BUILDROOT_BIND=$share "$TOOLS/buildroot" "$MACHINE-linux-gnu-gcc" -O2 -Wall -Wextra -Werror -I "$dir/include" -o "$dir/options-c" \
			"$REPO/selftests/examples/options.c" -lrdmacm &&
		BUILDROOT_BIND=$share "$TOOLS/buildroot" rustc --target "$MACHINE-unknown-linux-gnu" \
			-C "linker=$MACHINE-linux-gnu-gcc" --edition 2021 -O -C strip=symbols -D warnings \
			-o "$dir/options-rust" "$REPO/selftests/examples/options.rs"
}

# A program whose queue pairs are unreliable connections.
make_uc() {
	BUILDROOT_BIND=$share "$TOOLS/buildroot" "$MACHINE-linux-gnu-gcc" -O2 -Wall -Wextra -Werror -o "$share/uc" \
		"$REPO/selftests/uc/uc.c" -lrdmacm -libverbs
}

make_p9rdma() {
	program "$REPO/selftests/p9rdma" "$share/p9rdma"
}

make_script() {
	local script
	script=$("$TOOLS/script") && cp "$script" "$share/cm-script"
}

make_pyverbs() {
	local pyverbs
	pyverbs=$("$TOOLS/pyverbs-tests") && rm -rf "$share/pyverbs" && cp -r "$pyverbs" "$share/pyverbs"
}

# The tests of the kernel's source.
make_kernel_selftests() {
	local kdir
	kdir=$("$TOOLS/kernel" --print-kdir) && mkdir -p "$share/kernel-selftests" &&
		cp -r "$kdir"/tools/testing/selftests/{rdma,kselftest} "$share/kernel-selftests/"
}

# The kernel tree that modules for the guest are built with.
guest_kdir() {
	if [ "$kernel" = debug ]; then
		"$TOOLS/debug-kernel" --print-kdir
	else
		"$TOOLS/kernel" --print-kdir
	fi
}

# test_module DIR: the modules in selftests/DIR.
test_module() {
	local kdir
	kdir=$(guest_kdir) && KDIR=$kdir in_tree "$TOOLS/kmake" -s M="$REPO/selftests/$1" MO="$work/making-$1" \
		modules && put_modules "$share" "$work/making-$1"/*.ko
}

# put_modules TO FILE...: these modules, as the file or in the directory TO in a share. Their debug information is most
# of what a guest would read of them each time that it loads them.
put_modules() {
	local to=$1 files=("$1")
	shift
	cp "$@" "$to" || return
	[ ! -d "$to" ] || files=("${@/#*\//$to/}")
	BUILDROOT_BIND=$(dirname "${files[0]}") "$TOOLS/buildroot" "$MACHINE-linux-gnu-strip" --strip-debug "${files[@]}"
}

# in_tree COMMAND...: what builds in the repository, one at a time.
in_tree() {
	(
		flock 8
		"$@" 8>&-
	) 8>"$work/lock-tree"
}

make_consumer() {
	test_module consumer
}

make_reclaim() {
	test_module reclaim
}

make_planted() {
	test_module planted
}

# drivers NAME [OPTION]: prints the paths of what tools/NAME makes of drivers of the kernel.
drivers() {
	local kdir args=()
	if [ "$kernel" = debug ]; then
		kdir=$("$TOOLS/debug-kernel" --print-kdir) || return
		args=("$kdir" LLVM=1)
	fi
	"$TOOLS/$1" ${2:+"--$2"} "${args[@]}"
}

# driver NAME [OPTION]: the one that tools/NAME makes, as NAME.ko, or NAME-OPTION.ko.
driver() {
	local file
	file=$(drivers "$@") && put_modules "$share/$1${2:+-$2}.ko" "$file"
}

make_siw() {
	driver siw
}

make_siw_late() {
	driver siw late
}

make_softib() {
	driver softib
}

# driver_set NAME: all that tools/NAME makes, in a directory of that name.
driver_set() {
	local files
	mapfile -t files < <(drivers "$1")
	[ "${#files[@]}" -gt 0 ] && mkdir -p "$share/$1" && put_modules "$share/$1" "${files[@]}"
}

make_rnbd() {
	driver_set rnbd
}

make_smb() {
	driver_set smb
}

# The module as it is installed: by a package, or, for the debug kernel, by modules_install.
make_package() {
	if [ "$kernel" = debug ]; then
		mkdir -p "$share/installed"
		"$TOOLS/debug-module" modules_install INSTALL_MOD_STRIP=1 INSTALL_MOD_DIR=updates \
			INSTALL_MOD_PATH="$share/installed"
	else
		in_tree "$TOOLS/deb" "$share"
	fi
}

# The module without a signature, signed with the key that the firmware of tools/secure-boot trusts, and with another.
make_secure_boot() {
	local dir=$share/secure-boot keys kdir
	# sign KEYS FILE
	sign() {
		BUILDROOT_BIND="$dir $1" "$TOOLS/buildroot" "$kdir/scripts/sign-file" sha256 "$1/key.pem" "$1/cert.pem" \
			"$dir/unsigned.ko" "$2"
	}
	need package && keys=$("$TOOLS/secure-boot") && kdir=$("$TOOLS/kernel" --print-kdir) && mkdir -p "$dir" || return
	dpkg-deb -x "$share"/rust-rdma-cm-modules-*.deb "$1" && xz -dc "$1"/usr/lib/modules/*/updates/rust_rdma_cm.ko.xz >"$dir/unsigned.ko" &&
		openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=nobody -keyout "$1/key.pem" -out "$1/cert.pem" || return
	sign "$1" "$dir/other.ko" && sign "$keys" "$dir/signed.ko"
}

# image NAME: the programs that tools/NAME fetches, as NAME.sqfs.
image() {
	local dir
	dir=$("$TOOLS/$1") && cp "$dir/root.sqfs" "$share/$1.sqfs"
}

make_storage() {
	image storage
}

# With programs that use its libraries.
make_middleware() {
	local dir
	dir=$("$TOOLS/middleware") && cp "$dir/root.sqfs" "$share/middleware.sqfs" &&
		BUILDROOT_BIND=$share "$TOOLS/buildroot" make -s -C "$REPO/selftests/middleware" CC="$MACHINE-linux-gnu-gcc" \
			DEVEL="$dir/devel" OUT="$share"
}

make_valkey() {
	local files
	files=$("$TOOLS/valkey") && mkdir -p "$share/valkey" && xargs cp -t "$share/valkey" <<<"$files"
}

make_bpftrace() {
	image bpftrace
}

make_newest() {
	image newest
}

# The tests of others for NVMe, of which no release of Debian has a package.
make_blktests() {
	local kdir
	if [ ! -x "${BLKTESTS:-}/check" ]; then
		echo "BLKTESTS=DIR: a checkout of blktests in which make was run"
		return 1
	fi
	kdir=$("$TOOLS/kernel" --print-kdir) && cp -r "$BLKTESTS" "$share/blktests" &&
		cp "$kdir/.config" "$share/blktests/config-kernel"
}

# needs_of SUITE...: the parts that these need.
needs_of() {
	local suite
	for suite; do
		echo "${SUITE_NEEDS[${suite%% *}]}"
	done | tr ' ' '\n' | sort -u
}
