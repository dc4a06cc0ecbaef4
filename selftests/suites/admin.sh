#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The view that an administrator and another user have by rdma-cm and the netlink family, against what connections do.
# Over C the tool says which connection manager there is, and that it does not answer.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/admin.sh
. "$SELFTESTS/lib/admin.sh"
# shellcheck source=selftests/lib/options.sh
. "$SELFTESTS/lib/options.sh"

manager() {
	[ "$("$TOOL" | head -n 1)" = "$CM" ] || fail "$("$TOOL")" || return
	[ "$(json .manager status)" = "$CM" ] || return
	exec 7<>/dev/infiniband/rdma_cm
	grep -q "^used by processes:.* $BASHPID (" <<<"$("$TOOL" 7>&-)" || fail "$("$TOOL")"
}
check "status: which connection manager, and who uses it" manager

wrong_arguments() {
	ends_with 2 "$TOOL" show nothing && ends_with 2 "$TOOL" nothing && ends_with 2 "$TOOL" --nothing &&
		ends_with 2 "$TOOL" use nothing && ends_with 0 "$TOOL" --help && ends_with 0 "$TOOL" status
}
check "wrong arguments are status 2" wrong_arguments

# completes WORD... LAST: what bash offers for the last of these words.
completes() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_rdma-cm "$1" "${!#}" "${COMP_WORDS[-2]}"
	echo "${COMPREPLY[*]}"
}

completion() {
	mkdir "$TMP/generated" && "$TOOL" generate "$TMP/generated" && . "$TMP/generated/rdma-cm.bash" || return
	grep -q 'complete .*-F _rdma-cm rdma-cm' <<<"$(complete -p rdma-cm)" || fail "$(complete -p)" || return
	[ "$(completes rdma-cm sh)" = "show" ] && [ "$(completes rdma-cm show li)" = "listeners limits" ] &&
		[ "$(completes rdma-cm use r)" = "rust" ] || return
	# Each command that --help has is offered, and no other.
	[ "$("$TOOL" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | xargs)" = \
		"$(completes rdma-cm "" | tr ' ' '\n' | grep -v '^-' | sort | xargs)" ] || fail "$(completes rdma-cm "")"
}
check "the completion of bash offers commands and their arguments" completion

# trace ARGUMENT...: the tool traces; "traced" ends that, and its output is $TMP/trace.
trace() {
	"$TOOL" trace "$@" >"$TMP/trace" 2>"$TMP/trace.err" & TRACER=$!
	INSTANCE=/sys/kernel/tracing/instances/rdma-cm-$TRACER
	wait_for 20 grep -q 1 "$INSTANCE/events/ib_mad/ib_mad_recv_done_handler/enable" || fail "$(cat "$TMP/trace.err")"
}

traced() {
	# Others who trace see nothing of it.
	[ "$(<"/sys/kernel/tracing/events/ib_cma/enable")" = 0 ] || fail "enabled for all" || return
	kill -INT "$TRACER" && wait "$TRACER" || fail "$? $(cat "$TMP/trace.err")" || return
	[ ! -e "$INSTANCE" ] || fail "the instance is still there"
}

# in_trace FILTER: the value is true of the traced connections.
in_trace() {
	jq -e "$1" "$TMP/trace" >/dev/null || fail "not $1: $(cat "$TMP/trace")"
}

# sent DEVICE MESSAGE: how many it has sent.
sent() {
	echo "$(<"/sys/class/infiniband/$1/ports/1/cm_tx_msgs/$2")"
}

traced_connection() {
	local before
	before=$(sent rxe0 req)
	trace -j && connection 7350 && traced || return
	in_trace 'length == 1 and (.[0] | ."client-is-here" == 1 and ."server-is-here" == 1)' || return
	in_trace ".[0] | (.client | startswith(\"$A4:\")) and .server == \"$B4:7350\"" || return
	in_trace '[.[0].steps[].message // empty] | unique - ["MRA"] == ["DREP", "DREQ", "REP", "REQ", "RTU"]' || return
	# As many as were counted, and each received after it was sent.
	in_trace "[.[0].steps[] | select(.message == \"REQ\" and .\"sent-us\")] | length == $(($(sent rxe0 req) - before))" || return
	in_trace '[.[0].steps[] | select(.message == "RTU")] | all(."sent-us" <= ."received-us" and .end == "client")' || return
	in_trace '[.[0].steps[] | select(.note == "ESTABLISHED" and .end == "server")] | length == 1' || return
	in_trace '[.[0].steps[].note // empty | select(test("^(connect|accept) by rping-[0-9]+$"))] | length == 2'
}
check "trace: the messages of a connection" traced_connection

traced_refusal() {
	trace --svg "$TMP/trace.svg" --save "$TMP/saved" || return
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7351 -C 1 >"$TMP/out" 2>&1 || return
	traced || return
	cat "$TMP/trace"
	grep -Eq '^ +[0-9.]+ \|<-+ REJ -+\| +[0-9.]+' "$TMP/trace" &&
		grep -q ' REJECTED: invalid service ID (8)$' "$TMP/trace" || return
	[ "$(wc -L <"$TMP/trace")" -le 80 ] || fail "wider than a terminal" || return
	python3 -c 'import sys, xml.dom.minidom as xml
assert ">REJ<" in xml.parse(sys.argv[1]).toxml()' "$TMP/trace.svg" || return
	# The saved trace shows the same, and the server's address finds it.
	"$TOOL" trace --from "$TMP/saved" "$B4" | diff "$TMP/trace" - || return
	ends_with 1 "$TOOL" trace --from "$TMP/saved" "$B4:7352"
}
check "trace: a refusal has its reason; saved and read again" traced_refusal

traced_retry() {
	local server client before
	run_rping "$PEER" 90 -s -a "$B4" -p 7352 -C 1 & server=$!
	await_listener "comm rping" || return
	# The answers are lost for a while. The other connection has another port.
	$PEER tc qdisc add dev v1 root netem loss 100% || return
	trace -j "$B4:7352" || return
	before=$(sent rxe1 rep)
	run_rping "" 60 -c -a "$B4" -p 7352 -C 1 & client=$!
	is_answered() {
		[ "$(sent rxe1 rep)" -gt "$before" ]
	}
	wait_for 30 is_answered || fail "no answer" || return
	# Until it has been lost.
	pause 0.5
	$PEER tc qdisc del dev v1 root && ends_within 60 "$client" && ends_within 20 "$server" && connection 7353 && traced ||
		return
	in_trace 'length == 1' || return
	in_trace '[.[0].steps[] | select(.message == "REP" and (has("received-us") | not))] | length >= 1' || return
	in_trace '[.[0].steps[] | select(.message == "REP" and .note == "again" and has("received-us"))] | length >= 1'
}
check "trace: an answer is lost, and sent again" traced_retry

no_trace() {
	ends_with 2 "$TOOL" trace nowhere && ends_with 2 "$TOOL" trace --from x --save y || return
	ends_with 1 "$TOOL" trace --from "$TMP/none" && ends_with 1 "$TOOL" trace --from /dev/null || return
	ends_with 4 as $OTHER "$TOOL" trace --seconds 1 || return
	ends_with 1 unshare --mount sh -c "umount -l /sys/kernel/tracing && exec $TOOL trace --seconds 1" || return
	grep -q 'mount -t tracefs' "$TMP/err" || fail "$(cat "$TMP/err")" || return
	# Nothing happens meanwhile.
	ends_with 1 "$TOOL" trace --seconds 1 || return
	# One that was killed leaves its instance, which the next one removes.
	trace && kill -9 "$TRACER" && [ -d "$INSTANCE" ] && ends_with 1 "$TOOL" trace --seconds 1 || return
	[ ! -e "$INSTANCE" ] || fail "left" || return
	[ -n "$CM_BUILT_IN" ] || { cm-use none && ends_with 3 "$TOOL" trace --seconds 1 && cm-use "$CM"; }
}
check "trace: no such address, file, right, tracefs, connection manager" no_trace

used_already() {
	object "\"$CM\",\"$CM\"" use "$CM" && [ -z "$("$TOOL" use "$CM")" ] && [ "$("$TOOL" | head -n 1)" = "$CM" ]
}
check "use, as JSON: the one that is loaded stays" used_already

no_family() {
	local what
	for what in "show connections" "show listeners" "show peers" "show limits" stat tune monitor; do
		# shellcheck disable=SC2086 # words
		ends_with 3 "$TOOL" $what || return
	done
}
if [ "$CM" = c ]; then
	check "no answer is status 3" no_family
	finish
fi

connections() {
	local begun=$SECONDS age
	serve && connect $OWNER && connect $OTHER || return
	wait_for 20 established 2 || fail "$("$TOOL" show connections)" || return
	# The administrator of a namespace sees what is there, of all users.
	[ "$(json 'map(.uid) | sort | tostring' show connections)" = "[$OWNER,$OTHER]" ] || return
	[ "$(json 'map(.pid) | sort | map(tostring) | join(" ")' show connections)" = \
		"$(printf '%s\n' "${CLIENTS[@]}" | sort -n | xargs)" ] || fail "${CLIENTS[*]}" || return
	[ "$(json 'map(.dst) | unique | .[0]' show connections)" = "$B4:7330" ] || return
	[ "$(peer_json 'map(select(."cm-state" == "established")) | length' show connections)" -eq 2 ] || return
	[ "$(peer_json 'map(.uid) | unique | tostring' show connections)" = "[$OWNER]" ] || return
	# A user sees its own.
	[ "$(as $OWNER "$TOOL" -j show connections | jq 'map(.uid) | tostring')" = "\"[$OWNER]\"" ] || return
	[ "$(as $OTHER "$TOOL" -j show connections | jq 'map(.uid) | tostring')" = "\"[$OTHER]\"" ] || return
	[ "$(as 1002 "$TOOL" -j show connections)" = "[]" ] || return
	[ "$(as 1002 "$TOOL" -j show peers)$(as 1002 "$TOOL" -j show listeners)" = "[][]" ] || return
	# It is the same that ib_core says.
	[ "$(json 'map(.src) | sort | join(" ")' show connections)" = \
		"$(rdma -j resource show cm_id | jq -r 'map(select(.state == "CONNECT" and .ifname == "rxe0")."src-addr") |
			sort | join(" ")')" ] ||
		fail "$(rdma -j resource show cm_id)" || return
	age=$(json 'map(."age-ms") | min' show connections)
	[ "$age" -gt 0 ] && [ "$age" -lt $(((SECONDS - begun + 1) * 1000)) ] || fail "age $age" || return
	grep -q "rping/${CLIENTS[0]} *established" <<<"$("$TOOL" show connections)" || fail "$("$TOOL" show connections)" || return
	stop || return
	wait_for 10 established 0
}
check "connections: all of the namespace, or the user's own" connections

# options FILTER SUBJECT: what is set on the id, and the values, of the one that the filter chooses.
options() {
	json ".[] | select($1) | [[.\"set-on-id\"[].name], .\"max-retries\", .\"deadline-ms\", .\"timewait\", .\"early-retry-ms\",
		.\"backlog-parking\"] | tostring" show "$2"
}

options_are() {
	[ "$(options "$1" "$2")" = "$3" ] || fail "$(options "$1" "$2") in place of $3"
}

id_options() {
	local client=".dst == \"$B4:7330\""
	with_options || return
	# The values that are not the id's own are those of the port, as it is tuned now.
	options_are "$client" connections '[["max-retries","early-retry-ms"],3,0,22,0,1024]' || return
	"$TOOL" tune set rxe0 max-retries=9 deadline-ms=8000 || return
	options_are "$client" connections '[["max-retries","early-retry-ms"],3,8000,22,0,1024]' || return
	options_are ".src == \"$A4:7361\"" listeners '[["backlog-parking"],9,8000,22,20,7]' || return
	"$TOOL" tune set rxe0 max-retries=15 deadline-ms=0 || return
	# A wildcard listener has no port.
	options_are '.src == "0.0.0.0:7362"' listeners '[["deadline-ms"],null,9000,null,null,null]' || return
	"$TOOL" show connections --verbose >"$TMP/out" && [ "$(wc -L <"$TMP/out")" -le 80 ] &&
		grep -qx '    set on the id: max-retries=3 early-retry-ms=0' "$TMP/out" &&
		grep -q '^    of the port: response-timeout=20 deadline-ms=0 timewait=22' "$TMP/out" || fail "$(cat "$TMP/out")" || return
	grep -qx '    set on the id: deadline-ms=9000' <<<"$("$TOOL" show listeners -v)" || return
	! grep -q 'max-retries' <<<"$("$TOOL" show connections)" || return
	# An id of a request has the options of its listener.
	$PEER rping -c -a "$A4" -p 7361 >/dev/null 2>&1 &
	request_is_there() {
		[ "$(options ".src == \"$A4:7361\"" connections)" = '[["backlog-parking"],15,0,22,20,7]' ]
	}
	wait_for 20 request_is_there || fail "$(json . show connections)" || return
	kill "$OPTIONED" %%
	wait
	wait_for 10 no_cm_ids
}
check "connections, listeners: the options that are set on an id, and those of its port" id_options

# The server is stopped: nobody reads the requests. Its backlog is 3.
listener() {
	local i
	serve || return
	[ "$(peer_json '.[0] | [.uid, .backlog, .unread, .parked, .refused] | tostring' show listeners)" = \
		"[$OWNER,3,0,0,0]" ] || return
	[ "$(json 'length' show listeners)" -eq 0 ] || fail "seen in another namespace" || return
	kill -STOP "$(peer_json '.[0].pid' show listeners)" || return
	for i in 1 2 3 4 5; do
		connect $OWNER
	done
	listener() {
		[ "$(peer_json '.[0] | [.backlog, .unread, .parked, .refused] | tostring' show listeners)" = "$1" ]
	}
	wait_for 20 listener "[3,5,2,0]" || fail "$(peer_json . show listeners)" || return
	# The requests that wait are unanswered, and charged to the owner of the listener.
	[ "$(json '.[0] | [.gid, .connections, .unanswered] | tostring' show peers)" = "[\"$B4\",5,5]" ] ||
		fail "$(json . show peers)" || return
	[ "$(peer_json ".[] | select(.uid == $OWNER) | .resource[] | select(.name == \"requests\").used" show limits)" -eq 5 ] ||
		fail "$(peer_json . show limits)" || return
	# Without parking there is no room for more.
	$PEER "$TOOL" tune set rxe1 backlog-parking=0 || return
	connect $OTHER
	refused() {
		[ "$(peer_json '.[0].refused' show listeners)" -gt 0 ]
	}
	wait_for 20 refused || fail "$(peer_json . show listeners)" || return
	[ "$(peer_json '.[0].unread' show listeners)" -eq 5 ] || return
	$PEER "$TOOL" tune set rxe1 backlog-parking=1024 || return
	kill -CONT "$(peer_json '.[0].pid' show listeners)" && stop
}
check "listeners: backlog, unread, parked and refused requests" listener

limits() {
	local want
	serve && connect $OWNER && connect $OTHER && wait_for 20 established 2 || return
	used() {
		"$@" "$TOOL" -j show limits | jq -r 'map(.uid) | unique | tostring'
	}
	[ "$(used)" = "[$OWNER,$OTHER]" ] || fail "$(used)" || return
	[ "$(used as $OWNER)" = "[$OWNER]" ] || fail "$(used as $OWNER)" || return
	[ "$(used as 1002)" = "[]" ] || fail "$(used as 1002)" || return
	# The administrator of a user namespace sees its own users only. It is the user outside.
	[ "$(as $OTHER unshare --user --map-root-user --net "$TOOL" -j show limits | jq -c 'map(.uid) | unique')" = "[0]" ] ||
		return
	# The file of the process says the same.
	want=$(sed -n 's/^ids:\t\([0-9]*\) of.*/\1/p' "/proc/${CLIENTS[1]}/fdinfo"/* | head -n 1)
	[ "$(json ".[] | select(.uid == $OTHER) | .resource[] | select(.name == \"ids\").used" show limits)" -eq "$want" ] ||
		return
	stop
}
check "limits: of all users, of a user namespace, or of the user" limits

# rejects KIND REASON [PREFIX...]: the value of a counter, 0 if it is not there.
rejects() {
	"${@:3}" "$TOOL" -j stat --all | jq -r "map(select(.counter == \"$1\" and .of == \"$2\").value) | add // 0"
}

refusals() {
	local sent received reason="invalid service ID"
	# shellcheck disable=SC2086 # words
	sent=$(rejects tx-rejects "$reason" $PEER) received=$(rejects rx-rejects "$reason")
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7331 -C 1 || return
	# Early retries may be refused, too, which is no more news to the client.
	# shellcheck disable=SC2086 # words
	[ "$(rejects tx-rejects "$reason" $PEER)" -gt "$sent" ] || fail "not counted as sent" || return
	[ "$(rejects rx-rejects "$reason")" -gt "$received" ] || fail "not counted as received" || return
	"$TOOL" stat --openmetrics >"$TMP/metrics" || return
	grep -q "^rdma_cm_rx_rejects_total{device=\"rxe0\",port=\"1\",reason=\"$reason\"} [1-9]" "$TMP/metrics" || return
	[ "$(tail -n 1 "$TMP/metrics")" = "# EOF" ] || return
	grep -qx '# TYPE rdma_cm_rx_rejects_total counter' <<<"$("$TOOL" stat --prometheus)"
}
check "stat: refusals by reason, at both ends" refusals

as_in_sysfs() {
	local group of value dir=/sys/class/infiniband/rxe0/ports/1 compared=0
	serve && connect $OWNER && wait_for 20 established 1 && stop || return
	while IFS=$'\t' read -r group of value; do
		case $group in
		rx-drops | [tr]x-msgs | tx-retries | rx-duplicates) ;;
		*) continue ;;
		esac
		[ "$(<"$dir/cm_${group//-/_}/$of")" = "$value" ] || fail "$group $of: $value" || return
		compared=$((compared + 1))
	done < <(json '.[] | select(.port == "rxe0/1") | [.counter, .of, .value] | @tsv' stat --all)
	[ "$compared" -eq 55 ] || fail "$compared counters"
}
check "stat: the counters of sysfs" as_in_sysfs

# early COUNTER: the number of REQs in a counter of early retries.
early() {
	"$TOOL" -j stat --all | jq "map(select(.port == \"rxe0/1\" and .counter == \"$1\" and .of == \"req\").value) | add // 0"
}

# The server reads after some early retries, so that the answer may be to any of them.
early_retries() {
	local sent answered
	sent=$(early tx-early-retries) answered=$(early early-retries-answered)
	# The neighbours know one another, as nothing of the peer arrives from here on.
	serve && connect $OWNER && wait_for 20 established 1 && stop && serve || return
	$PEER tc qdisc add dev v1 root netem loss 100% && connect $OWNER || return
	more() {
		[ "$(early tx-early-retries)" -gt "$sent" ]
	}
	wait_for 20 more || fail "no early retry" || return
	$PEER tc qdisc del dev v1 root
	wait_for 30 established 1 || fail "$("$TOOL" show connections)" || return
	[ "$(early early-retries-answered)" -gt "$answered" ] || fail "not answered" || return
	stop
}
check "stat: early retries, and those that were answered" early_retries

# latency PHASE [PREFIX...]: number and sum, in microseconds, of what all ports of this phase have counted.
latency() {
	"${@:2}" "$TOOL" -j stat --latency | jq -r "map(select(.phase == \"$1\")) | [map(.\"latency-bucket\" // [] | .[].count),
		map(.\"latency-sum-us\")] | map(flatten | add // 0) | @tsv"
}

# took PHASE MS [PREFIX...]: since before(), one has taken that long or up to 20 s longer.
before() {
	# shellcheck disable=SC2086 # words
	read -r COUNT[$1] SUM[$1] < <(latency "$@")
}
took() {
	local count sum
	read -r count sum < <(latency "$1" "${@:3}")
	[ $((count - COUNT[$1])) -eq 1 ] || fail "$1: $count after ${COUNT[$1]}" || return
	sum=$(((sum - SUM[$1]) / 1000))
	[ "$sum" -ge "$2" ] && [ "$sum" -le $(($2 + 20000)) ] || fail "$1: $sum ms"
}

# The server reads the request after a second. Each end counts the phases that it waits for.
latencies() {
	local server
	declare -A COUNT SUM
	serve || return
	server=$(peer_json '.[0].pid' show listeners)
	# shellcheck disable=SC2086 # words
	before address && before req && before dreq && before accept $PEER && before rep $PEER || return
	unread() {
		[ "$(peer_json '.[0].unread' show listeners)" -eq 1 ]
	}
	kill -STOP "$server" && connect $OWNER && wait_for 10 unread && pause 1 && kill -CONT "$server" || return
	wait_for 30 established 1 || fail "$("$TOOL" show connections)" || return
	# shellcheck disable=SC2086 # words
	took address 0 && took req 900 && took accept 900 $PEER && took rep 0 $PEER || return
	stop || return
	# These two wait until the connection has ended.
	$PEER ucmatose -c 1 -p 7335 >/dev/null & server=$!
	await_listener 7335 && ucmatose -s "$B4" -c 1 -p 7335 >/dev/null && ends_within 20 "$server" && took dreq 0 || return
	"$TOOL" stat --latency | tee "$TMP/latency"
	grep -q '^rxe0/1 *req .* <= ' "$TMP/latency" || return
	"$TOOL" stat --openmetrics >"$TMP/metrics" || return
	grep -q '^rdma_cm_latency_seconds_bucket{device="rxe0",port="1",phase="req",le="+Inf"} [1-9]' "$TMP/metrics" || return
	ends_with 2 "$TOOL" stat --latency --watch
}
check "stat: how long the phases of a connection took" latencies

STAY=300
# hold: so many connections, both ends of which are here, until "$STORM" is killed.
hold() {
	[ -p "$TMP/hold" ] || mkfifo "$TMP/hold"
	/mnt/share/cmstorm both -a "$A4" -p 7340 -o $STAY -n 1 --hold <>"$TMP/hold" >/dev/null & STORM=$!
}

# Connections that stay are in each dump, whatever is made and destroyed meanwhile.
churn() {
	local i churn seen
	stays() {
		[ "$(json '[.[] | select(.dst // "" | endswith(":7340")) | select(."cm-state" == "established")] | length' \
			show connections)" -ge $STAY ]
	}
	hold
	wait_for 60 stays || fail "$(json length show connections)" || return
	# Queue pair numbers in time wait are not used again so soon.
	for ((i = 1; i < 1000; i++)); do
		/mnt/share/cmstorm both -a "$A4" -p 7341 -n 200 -f 50 --qpn=$((i * 1000)) --finish=close >/dev/null || exit
	done & churn=$!
	for ((i = 0; i < 8; i++)); do
		seen=$(json '[.[] | select(.dst // "" | endswith(":7340")) | .src] | unique | length' show connections)
		[ "$seen" -ge $STAY ] || fail "dump $i: $seen" || return
		"$TOOL" -j show peers >/dev/null && "$TOOL" -j show listeners >/dev/null && "$TOOL" -j show limits >/dev/null || return
	done
	runs "$churn" || fail "nothing was made meanwhile" || return
	kill "$churn" "$STORM"
	wait
	wait_for 20 no_cm_ids
}
check "a dump misses nothing that stays, beside ids that come and go" churn

# A dump that nobody reads to its end keeps the module, until its socket is closed.
half_read() {
	local dump
	both_ends() {
		[ "$(json length show connections)" -ge $((2 * STAY)) ]
	}
	hold
	wait_for 60 both_ends || fail "$(json length show connections) connections" || return
	python3 - <<'END' >"$TMP/half" & dump=$!
import socket, struct, time
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
def message(family, flags, command, attributes=b""):
    body = struct.pack("BBH", command, 1, 0) + attributes
    netlink.send(struct.pack("IHHII", 16 + len(body), family, flags, 1, 0) + body)
name = b"rdma-cm\0"
message(16, 1, 3, struct.pack("HH", 4 + len(name), 2) + name)
answer = netlink.recv(65536)[20:]
while answer:
    length, kind = struct.unpack_from("HH", answer)
    if kind == 1:
        family, = struct.unpack_from("H", answer, 4)
    answer = answer[(length + 3) & ~3:]
message(family, 0x301, 6)
netlink.recv(100)
print("begun", flush=True)
time.sleep(1000)
END
	wait_for 60 test -s "$TMP/half" || fail "no dump" || return
	kill "$STORM"
	wait "$STORM"
	wait_for 20 no_cm_ids || fail "$(cm_ids)" || return
	! rmmod rust_rdma_cm 2>/dev/null || fail "unloaded below a dump" || return
	kill "$dump"
	wait "$dump"
	# A monitor keeps nothing, and ends with the module.
	"$TOOL" monitor >"$TMP/out" 2>"$TMP/err" & dump=$!
	sleep 3
	cm-use none || return
	wait "$dump"
	[ $? -eq 3 ] || fail "the monitor goes on" || return
	ends_with 3 "$TOOL" show peers && ends_with 0 "$TOOL" && cm-use rust && ends_with 0 "$TOOL" show peers
}

swapped() {
	object '"c","rust","rust_rdma_cm","ib_cm","rdma_cm","rdma_ucm"' use c && [ "$(cm-use)" = c ] &&
		[ -d /sys/module/rdma_ucm ] || return
	object '"rust","c","rdma_ucm","rdma_cm","ib_cm","rust_rdma_cm"' use rust && [ "$(cm-use)" = rust ] || return
	rmmod rust_rdma_cm && object '"rust","none","rust_rdma_cm"' use rust && [ "$(cm-use)" = rust ] || return
	# Nothing is said of what does not happen.
	exec 7<>/dev/infiniband/rdma_cm
	ends_with 1 "$TOOL" -j use c 7>&- && [ ! -s "$TMP/out" ]
}
if [ -z "$CM_BUILT_IN" ]; then
	check "a dump keeps the module loaded until it is read or closed" half_read
	check "use, as JSON: what was unloaded and loaded" swapped
else
	skip "a dump keeps the module loaded until it is read or closed" "the module is built in"
	skip "use, as JSON: what was unloaded and loaded" "the module is built in"
fi
finish
