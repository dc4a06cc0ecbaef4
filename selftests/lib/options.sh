# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# A program that has set options on its ids. To be sourced after lib.sh.

# with_options: a program with a listener and a connection, each of which has set options; OPTIONED is its number.
with_options() {
	# The functions of the example, which imports cleanly.
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SELFTESTS/examples python3 - "$A4" "$B4" >"$TMP/optioned" 2>&1 <<-'END' & OPTIONED=$!
		from options import *

		def address(text, port):
		    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(text) + bytes(8)

		def new(**options):
		    made = ctypes.c_void_p()
		    call("rdma_create_id", channel, ctypes.byref(made), None, RDMA_PS_TCP)
		    for name, number, _ in OPTIONS:
		        if name in options:
		            word = ctypes.c_uint(options[name])
		            call("rdma_set_option", made.value, RDMA_OPTION_TUNING, number, ctypes.byref(word), ctypes.c_size_t(4))
		    return made.value

		POINTERS["rdma_bind_addr"] = "pp"
		POINTERS["rdma_listen"] = "p"
		channel = rdmacm.rdma_create_event_channel()
		for text, port, options in ((sys.argv[1], 7361, {"PARKING": 7}), ("0.0.0.0", 7362, {"DEADLINE": 9000})):
		    listener = new(**options)
		    call("rdma_bind_addr", listener, address(text, port))
		    call("rdma_listen", listener, 4)
		client = new(MAX_RETRIES=3, EARLY_RETRY=0)
		call("rdma_resolve_addr", client, None, address(sys.argv[2], 7330), 2000)
		print(next_event(channel), flush=True)
		time.sleep(1000)
	END
	wait_for 20 grep -q ADDR_RESOLVED "$TMP/optioned" || fail "$(cat "$TMP/optioned")"
}
