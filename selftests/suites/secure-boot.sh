#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The packages on a host with Secure Boot: C's modules stay until the module is signed with a key that the firmware trusts.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

release=$(uname -r)
updates=/lib/modules/$release/updates
conf=/etc/modprobe.d/rust-rdma-cm.conf
tool=/mnt/share/rdma-cm
cm-use none || exit
rm -f /etc/modprobe.d/cm-use.conf

secured() {
	[ "$(od -An -tu1 -j4 /sys/firmware/efi/efivars/SecureBoot-*)" -eq 1 ] || fail "Secure Boot is off" || return
	grep -q '\[integrity\]' /sys/kernel/security/lockdown
}
mount -t efivarfs efivarfs /sys/firmware/efi/efivars
mount -t securityfs securityfs /sys/kernel/security
check "Secure Boot is on, and the kernel locked down" secured

# install_module NAME: as the packages do. depmod has run on the host.
install_module() {
	mkdir -p "$updates" && cp "/mnt/share/secure-boot/$1.ko" "$updates/rust_rdma_cm.ko" &&
		cp /run/guest/package/*.bin "/lib/modules/$release/" && cp /mnt/repo/debian/rust-rdma-cm.conf "$conf"
}

# pings MANAGER: what modprobe loads for rdma_ucm, and rping over it.
pings() {
	local server
	modprobe rdma_ucm && [ "$($tool | head -n 1)" = "$1" ] || fail "$($tool; dmesg | tail)" || return
	run_rping "$PEER" 60 -s -a "$B4" -C 3 &
	server=$!
	await_listener "comm rping" && run_rping "" 60 -c -a "$B4" -C 3 && ends_within 10 "$server" && wait_for 10 no_cm_ids
}

unsigned() {
	local out
	install_module unsigned && pings c || return
	! out=$($tool use rust 2>&1) &&
		[ "$out" = "rdma-cm: rust_rdma_cm is not signed, and this kernel demands signatures: nothing has changed" ] ||
		fail "$out" || return
	[ "$($tool status | sed -n 2p)" = "why: rust_rdma_cm is not signed, and this kernel demands signatures" ]
}
check "an unsigned module: C's are loaded, and the tool says why" unsigned

# The tool cannot know which keys the kernel trusts: it loads C's modules again.
by_another_key() {
	local out
	install_module other || return
	! out=$($tool use rust 2>&1) && [ "$(wc -l <<<"$out")" -eq 1 ] &&
		[[ $out = "rdma-cm: rust cannot be loaded: c is loaded, as before: "* ]] || fail "$out" || return
	pings c
}
check "one that is signed by a key that nobody trusts: C's stay" by_another_key

signed() {
	install_module signed && $tool use rust && pings rust && rmmod rust_rdma_cm && pings rust || return
	# Without the mark of an unsigned module (E).
	[[ $(cat /sys/module/rust_rdma_cm/taint) != *E* ]] || fail "$(cat /sys/module/rust_rdma_cm/taint)"
}
check "one that is signed by a key of the firmware is loaded" signed
cm-use none
rm -f "$conf"
finish
