#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# modprobe on a system where the packages of "make deb" are installed, or what "make modules_install
# INSTALL_MOD_PATH=installed" left, in the shared directory, beside the distribution's modules. On a kernel that
# demands signatures (module.sig_enforce=1), that C's modules are loaded instead, which have them.
#
# shellcheck disable=SC2016,SC2317 # scripts of packages; functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/reader.sh
. "$SELFTESTS/lib/reader.sh"

release=$(uname -r)
installed=${INSTALLED:-/mnt/share/installed}/lib/modules/$release
package=$(echo /mnt/share/rust-rdma-cm-modules-*.deb)
tool_package=$(echo /mnt/share/rdma-cm_*.deb)
conf=/usr/lib/modprobe.d/rust-rdma-cm.conf
if [ "$CM" = c ] || { [ ! -d "$installed" ] && [ ! -e "$package" ]; }; then
	skip "an installed package" "no $package and no $installed, or not for C"
	finish
fi
signed_only=''
! grep -q Y /sys/module/module/parameters/sig_enforce || signed_only=1

cm-use none || exit
rm -f /etc/modprobe.d/cm-use.conf

# Only what these tests load, because depmod reads every module there is.
tree=$TMP/tree
new=$tree/lib/modules/$release
mkdir -p "$new"
cp /lib/modules/"$release"/modules.{order,builtin,builtin.modinfo} "$new"
modprobe -a -D rdma_ucm rdma_rxe ib_uverbs configfs ib_umad nvme-rdma ib_srp |
	sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u |
	while read -r file; do
		install -D -m 644 "$file" "$new/${file#/lib/modules/"$release"/}"
	done
mount --bind "$tree/lib/modules" /lib/modules || exit
# Modules that modprobe -r found unused have to be there again.
trap 'cm-use none; umount /lib/modules; rm -f "$conf"; modprobe ib_uverbs; cm-use "$CM"; rm -rf "$TMP"' EXIT

loaded() {
	[ -d "/sys/module/$1" ]
}

unload_all() {
	local module
	for module in rdma_ucm rdma_cm ib_cm rust_rdma_cm; do
		! loaded "$module" || rmmod "$module" || return
	done
}

pings() {
	local server
	$PEER rping -s -a "$B4" -C 3 &
	server=$!
	# Its first call waits for the module.
	wait_for 60 test -c /dev/infiniband/rdma_cm || fail "no device" || return
	await_listener "comm rping" || return
	timeout $((30 * PATIENCE)) rping -c -a "$B4" -C 3 || return
	ends_within 10 "$server"
}

# status: the first two lines of the tool: which connection manager is loaded, and why.
status() {
	$tool status | head -n 2 | paste -s -d ' '
}

# The tool of an administrator.
tool=/mnt/share/rdma-cm
[ ! -e "$package" ] || tool=rdma-cm
# The name of the package that is installed, without its version.
name() {
	dpkg-deb -f "$1" Package
}

install_it() {
	if [ -e "$package" ]; then
		# The guest has a kernel, but no package of one.
		dpkg -i "$tool_package" "$package" || return
		[ -e "/usr/lib/modules/$release/updates/rust_rdma_cm.ko.xz" ] && [ -e "$conf" ] ||
			fail "a file is missing" || return
		[ -n "$(modinfo -F commit rust_rdma_cm)" ] || return
		[ "$(rdma-cm --version)" = "rdma-cm $(modinfo -F version rust_rdma_cm) ($(modinfo -F commit rust_rdma_cm))" ] ||
			fail "$(rdma-cm --version)"
	else
		cp -r "$installed"/updates "$new" && depmod "$release" && cp /mnt/repo/debian/rust-rdma-cm.conf "$conf"
	fi
}
check "installation" install_it

# depmod resolves the names of functions to C's modules, whose place modprobe's lines take.
of_c() {
	local module
	[ "$(modprobe --resolve-alias symbol:rdma_listen) $(modprobe --resolve-alias symbol:ib_send_cm_req)" = \
		"rdma_cm ib_cm" ] || fail "$(modprobe --resolve-alias symbol:rdma_listen)" || return
	for module in ib_cm rdma_cm rdma_ucm; do
		[[ $(modinfo -F filename "$module") = */kernel/* ]] || fail "$(modinfo -F filename "$module")" || return
	done
}
check "no module of C's name is installed" of_c

remove_it() {
	if [ -e "$package" ]; then
		dpkg -r "$(name "$package")" || return
		[ ! -e "$new/updates" ] || fail "something is left"
	else
		rm -r "$new/updates" && depmod "$release"
	fi
}

# is_rust and is_c: which connection manager is loaded, and all of it.
is_rust() {
	loaded rust_rdma_cm || fail "rust_rdma_cm is not loaded" || return
	! loaded rdma_cm && ! loaded ib_cm && ! loaded rdma_ucm || fail "a C module is loaded"
}

is_c() {
	loaded rdma_cm && loaded ib_cm || fail "C's modules are not loaded" || return
	! loaded rust_rdma_cm || fail "rust_rdma_cm is loaded"
}

by_name() {
	modprobe rdma_ucm && "$1" && pings && wait_for 10 no_cm_ids && unload_all
}

# The modules of the kernel's own consumers that it has got.
consumers=()
for module in nvme-rdma ib_srp; do
	! modinfo "$module" >/dev/null 2>&1 || consumers+=("$module")
done

# Modules that need a connection manager by the names of its functions, and those of C by their own.
for_the_kernel() {
	local module
	for module in "${consumers[@]}" rdma_cm ib_cm; do
		! loaded rust_rdma_cm && ! loaded ib_cm || fail "already loaded" || return
		modprobe "$module" || return
		if [ "$1" = is_rust ]; then
			is_rust || fail "$module" || return
		else
			loaded ib_cm && ! loaded rust_rdma_cm || fail "$module: C's modules are not loaded" || return
		fi
		case $module in
		nvme-rdma | ib_srp)
			loaded "${module/-/_}" || fail "$module is not loaded" || return
			[ "$1" != is_rust ] || ! rmmod rust_rdma_cm || fail "unloaded below $module" || return
			modprobe -r "$module" || return
			;;
		esac
		unload_all || return
	done
}

# librdmacm asks ib_core for the device, and ib_core asks for a module by an alias.
on_demand() {
	! loaded rust_rdma_cm && ! loaded ib_cm || fail "already loaded" || return
	pings && "$1" && wait_for 10 no_cm_ids && unload_all
}

if [ "$signed_only" ]; then
	check "an unsigned module is refused, and modprobe rdma_ucm loads C's" by_name is_c
	check "the first program that needs one loads C's" on_demand is_c
	check "modprobe ${consumers[*]} rdma_cm ib_cm, each loads C's" for_the_kernel is_c

	refused() {
		local out
		modprobe rdma_ucm && is_c || return
		! out=$($tool use rust 2>&1) || fail "done" || return
		[ "$(wc -l <<<"$out")" -eq 1 ] && [[ $out = *"not signed, and this kernel demands signatures"* ]] ||
			fail "$out" || return
		is_c && loaded rdma_ucm || return
		[ ! -e "$package" ] ||
			[ "$(status)" = "c why: rust_rdma_cm is not signed, and this kernel demands signatures" ] ||
			fail "$(status)" || return
		pings
	}
	check "rdma-cm use rust unloads nothing then, and says why" refused

	not_signed() {
		modprobe rdma_ucm || return
		at a "rdma-cm status"
	}
	situation not-signed not_signed

	unsigned() {
		modprobe rdma_ucm || return
		at a "rdma-cm"
		at a "rdma-cm use rust"
		at a "modprobe rust_rdma_cm"
		at a "dmesg | grep -c 'Loading of unsigned module is rejected'"
		VARIES='/^[0-9]+$/s/.*/N/'
	}
	situation unsigned unsigned
	finish
fi

check "modprobe rdma_ucm loads this module" by_name is_rust
check "the first program that needs it loads it" on_demand is_rust
check "modprobe ${consumers[*]} rdma_cm ib_cm, each loads it" for_the_kernel is_rust

swapping() {
	local user=$BASHPID
	[ "$($tool | head -n 1)" = none ] || fail "not none" || return
	$tool use rust && is_rust || return
	[ "$($tool | head -n 1)" = rust ] || fail "not rust" || return
	$tool use c && is_c && loaded rdma_ucm || return
	[ "$($tool | head -n 1)" = c ] || fail "not c" || return
	exec 7<>/dev/infiniband/rdma_cm
	! $tool use rust 7>&- || fail "swapped below a process" || return
	grep -q "^used by processes: $user " <<<"$($tool 7>&-)" || fail "$($tool)" || return
	exec 7>&-
	$tool use rust && unload_all
}
check "rdma-cm use swaps what nobody uses" swapping

swapping_below() {
	modprobe nvme-rdma || return
	! $tool use c || fail "swapped below a module" || return
	grep -q '^used by modules: nvme_rdma' <<<"$($tool)" || fail "$($tool)" || return
	[ "$($tool | head -n 1)" = rust ] || fail "not rust any more" || return
	modprobe -r nvme-rdma && unload_all
}
if [ ${#consumers[@]} -gt 0 ]; then
	check "rdma-cm use swaps nothing below a module" swapping_below
else
	skip "rdma-cm use swaps nothing below a module" "the kernel has no nvme-rdma"
fi

# A group of configfs, which is how ports are tuned, keeps the module.
swapping_below_group() {
	local out
	$tool use rust && mkdir /sys/kernel/config/rdma_cm/rxe0 || return
	! out=$($tool use c 2>&1) || fail "swapped below a group" || return
	[ "$out" = "rdma-cm: in use by configfs: /sys/kernel/config/rdma_cm/rxe0: nothing has changed" ] && is_rust ||
		fail "$out" || return
	grep -q '^used by configfs: /sys/kernel/config/rdma_cm/rxe0$' <<<"$($tool)" || fail "$($tool)" || return
	rmdir /sys/kernel/config/rdma_cm/rxe0 && $tool use c && is_c && unload_all
}
check "rdma-cm use swaps nothing below a group of configfs" swapping_below_group

not_root() {
	modprobe rdma_ucm || return
	setpriv --reuid 1000 --regid 1000 --clear-groups "$tool" use c
	[ $? -eq 4 ] || fail "no status 4" || return
	is_rust
}
check "rdma-cm use is for root" not_root

# broken FROM TO: this module with other bytes in the place of some is installed.
broken() {
	case $installed_file in
	*.xz) xz -dc "$TMP/kept" ;;
	*) cat "$TMP/kept" ;;
	esac | sed "s/$1/$2/g" >"$new/updates/rust_rdma_cm.ko" && depmod "$release"
}

# A module for another kernel is seen by its looks, and one that needs a function that the kernel lacks is not.
rolled_back() {
	local out installed_file
	installed_file=$(modinfo -F filename rust_rdma_cm)
	unload_all && $tool use c && is_c && mv "$installed_file" "$TMP/kept" || return
	broken "vermagic=$release" "vermagic=${release/#?/0}" || return
	! out=$($tool use rust 2>&1) &&
		[ "$out" = "rdma-cm: rust_rdma_cm is built for Linux ${release/#?/0}, and this is $release: nothing has changed" ] ||
		fail "$out" || return
	broken ib_register_client ib_register_clienX || return
	! out=$($tool use rust 2>&1) && [ "$(wc -l <<<"$out")" -eq 1 ] &&
		[[ $out = *"rust cannot be loaded: c is loaded, as before: "* ]] || fail "$out" || return
	is_c && loaded rdma_ucm && pings || return
	wait_for 10 no_cm_ids
	unload_all && rm "$new/updates/rust_rdma_cm.ko" && mv "$TMP/kept" "$installed_file" && depmod "$release"
}
check "rdma-cm use loads C's again where this module cannot be loaded" rolled_back

# --- the life of a package ---

says() {
	[ "$(status)" = "$1" ] || fail "$(status)"
}

# A version that is newer in nothing but its number, and the package of another kernel.
repack() {
	local from=$1 to=$2 path
	shift 2
	rm -rf "$TMP/repack"
	dpkg-deb -R "$from" "$TMP/repack" && sed -i "$@" "$TMP/repack"/DEBIAN/* || return
	[ "$to" = newer ] || find "$TMP/repack" -depth -name "*$release" | while read -r path; do
		mv "$path" "${path%"$release"}$to" || return
	done
	dpkg-deb -b "$TMP/repack" "$TMP/$to.deb" >/dev/null
}

upgraded() {
	local version
	unload_all && modprobe rdma_ucm && is_rust || return
	version=$(modinfo -F version rust_rdma_cm)
	says "rust version: $version" || return
	repack "$package" newer "s/^Version: .*/Version: 9.0/" && dpkg -i "$TMP/newer.deb" || return
	[ "$(dpkg-query -f '${Version}' -W "$(name "$package")")" = 9.0 ] || return
	# It is in use, and stays.
	is_rust && says "rust version: $version" && pings
}

side_by_side() {
	local other=7.2.99+deb13-amd64
	repack "$package" "$other" "s/$release/$other/g" && dpkg -i "$TMP/$other.deb" || return
	[ -e "/usr/lib/modules/$other/updates/rust_rdma_cm.ko.xz" ] && modinfo rust_rdma_cm >/dev/null &&
		says "rust version: $(modinfo -F version rust_rdma_cm)" || return
	dpkg -P "rust-rdma-cm-modules-$other" && [ ! -e "/usr/lib/modules/$other" ] && modinfo rust_rdma_cm >/dev/null
}

older=7.2.98+deb13-amd64 newest=7.9.1+deb13-amd64
# kernel_package RELEASE: installs a package that stands for that of a kernel, with the modules of this one; that of this
# kernel has none.
kernel_package() {
	local dir=$TMP/kernel of=$1
	rm -rf "$dir"
	mkdir -p "$dir/DEBIAN" "$dir/usr/share/doc/linux-image-$of" && : >"$dir/usr/share/doc/linux-image-$of/copyright" || return
	printf '%s: %s\n' Package "linux-image-$of" Version "$of" Architecture amd64 Section kernel Maintainer nobody \
		Description "stands for a kernel" >"$dir/DEBIAN/control"
	if [ "$of" != "$release" ]; then
		mkdir -p "$dir/usr/lib/modules/$of" &&
			cp -r "$new"/kernel "$new"/modules.{order,builtin,builtin.modinfo} "$dir/usr/lib/modules/$of" || return
		# As those of Debian's kernels do.
		printf '#!/bin/sh\n[ "$1" != configure ] || depmod %s\n' "$of" >"$dir/DEBIAN/postinst"
		printf '#!/bin/sh\n[ "$1" != purge ] || rm -rf /usr/lib/modules/%s/modules.*\n' "$of" >"$dir/DEBIAN/postrm"
		chmod +x "$dir"/DEBIAN/post*
	fi
	dpkg-deb -Znone -b "$dir" "$TMP/kernel.deb" >/dev/null && dpkg -i "$TMP/kernel.deb"
}

# takes RELEASE rust|c: the connection manager that a host takes with this kernel.
takes() {
	local would
	would=$(modprobe -S "$1" -D rdma_ucm) && [[ $would = *"install "*rust_rdma_cm* ]] || fail "$would" || return
	# C's, which modprobe loads if it cannot load the other one.
	would=$(modprobe -S "$1" --ignore-install -D rdma_ucm) && [[ $would = *"/$1/kernel/"*/rdma_ucm.ko* ]] ||
		fail "$would" || return
	if [ "$2" = rust ]; then
		would=$(modprobe -S "$1" -D rust_rdma_cm) && [[ $would = *"insmod "*"/$1/updates/rust_rdma_cm.ko"* ]] || fail "$would"
	else
		! would=$(modprobe -S "$1" -D rust_rdma_cm 2>&1) || fail "$would"
	fi
}

# The host has booted a kernel, and has the module for the one before.
module_after_kernel() {
	unload_all && dpkg -r "$(name "$package")" && repack "$package" "$older" "s/$release/$older/g" && dpkg -i "$TMP/$older.deb" ||
		return
	modprobe rdma_ucm && is_c && says "c why: rust_rdma_cm is not installed for Linux $release" && pings || return
	dpkg -i "$package" && is_c && says 'c why: rust_rdma_cm is installed: "rdma-cm use rust" loads it' || return
	wait_for 10 no_cm_ids
	$tool use rust && is_rust && says "rust version: $(modinfo -F version rust_rdma_cm)" && pings
}

# The next kernel, with its module before it, after it, and without.
kernel_after_module() {
	repack "$package" "$newest" "s/$release/$newest/g" && dpkg -i "$TMP/$newest.deb" && kernel_package "$newest" &&
		takes "$newest" rust || return
	dpkg -r "rust-rdma-cm-modules-$newest" && takes "$newest" c || return
	dpkg -i "$TMP/$newest.deb" && takes "$newest" rust && is_rust && says "rust version: $(modinfo -F version rust_rdma_cm)"
}

has_package() {
	[ "$(dpkg-query -f '${db:Status-Abbrev}' -W "$1" 2>/dev/null)" = "ii " ]
}

# apt keeps the kernel that runs, the newest one, and packages "...-modules-RELEASE" for them.
autoremoved() {
	local of
	mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt
	kernel_package "$older" && kernel_package "$release" && takes "$older" rust && apt-mark auto 'linux-image-*' || return
	apt-get autoremove -y && ! has_package "linux-image-$older" || fail "the old kernel is kept" || return
	for of in "$older" "$release" "$newest"; do
		has_package "rust-rdma-cm-modules-$of" || fail "the module of $of has gone, which was installed by hand" || return
	done
	apt-mark auto 'rust-rdma-cm-modules-*' && apt-get autoremove -y && ! has_package "rust-rdma-cm-modules-$older" ||
		fail "the module of the old kernel is kept" || return
	[ ! -e "/usr/lib/modules/$older/updates" ] && [ ! -e "/usr/lib/modules/$older/kernel" ] || fail "something is left" || return
	for of in "$release" "$newest"; do
		has_package "linux-image-$of" && has_package "rust-rdma-cm-modules-$of" || fail "$of has gone" || return
	done
	is_rust && says "rust version: $(modinfo -F version rust_rdma_cm)" && pings && takes "$newest" rust || return
	wait_for 10 no_cm_ids
	unload_all && modprobe rdma_ucm && is_rust && pings || return
	dpkg -P "linux-image-$newest" "linux-image-$older" "linux-image-$release" "rust-rdma-cm-modules-$newest" "rust-rdma-cm-modules-$older"
}

# The module is in use: it stays, and serves programs.
removed_while_loaded() {
	is_rust && remove_it && is_rust || return
	says "rust version: $(</sys/module/rust_rdma_cm/version)" || return
	modprobe rdma_ucm && is_rust && pings || return
	wait_for 10 no_cm_ids
	$tool use c && is_c && says "c why: rust_rdma_cm is not installed for Linux $release" && unload_all
}

without_module() {
	by_name is_c && for_the_kernel is_c || return
	! $tool use rust || fail "done" || return
	says "none why: rust_rdma_cm is not installed for Linux $release"
}

purged() {
	dpkg -P "$(name "$package")" "$(name "$tool_package")" || return
	[ ! -e "$conf" ] && [ ! -e /usr/bin/rdma-cm ] && [ ! -e /usr/libexec/rdma-cm ] || fail "something is left" || return
	by_name is_c && for_the_kernel is_c
}

if [ -e "$package" ]; then
	check "upgrade while it is loaded" upgraded
	check "the package of another kernel beside it" side_by_side
	check "the kernel is upgraded before the module" module_after_kernel
	check "the module of the next kernel is installed before it" kernel_after_module
	check "apt-get autoremove takes old kernels and their modules, and no others" autoremoved
	check "removal while it is loaded" removed_while_loaded
	check "with the tool alone C's modules are back" without_module
	check "purge: nothing is left, and C's modules are back" purged
	finish
fi

removed() {
	remove_it && by_name is_c && for_the_kernel is_c
}
check "without the module C's are back" removed
rm -f "$conf"
finish
