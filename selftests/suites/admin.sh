#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The view that an administrator and another user have by rdma-cm and the netlink family, against what connections do.
# Over C the tool says which connection manager there is, and that it does not answer.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/options.sh
. "$SELFTESTS/lib/options.sh"

TOOL=/mnt/share/rdma-cm
OWNER=1000 OTHER=1001
[ -x "$TOOL" ] || { skip "rdma-cm" "no $TOOL"; finish; }

# ends_with STATUS COMMAND...: it ends so, and a failure is one line.
ends_with() {
	local want=$1 status=0
	shift
	"$@" >"$TMP/out" 2>"$TMP/err" || status=$?
	[ "$status" -eq "$want" ] || { cat "$TMP/out" "$TMP/err"; fail "$*: status $status"; } || return
	[ "$status" -eq 0 ] || [ "$(wc -l <"$TMP/err")" -eq 1 ] || [ "$status" -eq 2 ] || fail "$(cat "$TMP/err")"
}

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# json FILTER ARGUMENT...: a value of the tool's output.
json() {
	local filter=$1
	shift
	"$TOOL" -j "$@" | jq -r "$filter"
}

peer_json() {
	local filter=$1
	shift
	$PEER "$TOOL" -j "$@" | jq -r "$filter"
}

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

sent_reqs() {
	echo "$(<"/sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/req")"
}

traced_connection() {
	local before
	before=$(sent_reqs)
	trace -j && connection 7350 && traced || return
	in_trace 'length == 1 and (.[0] | ."client-is-here" == 1 and ."server-is-here" == 1)' || return
	in_trace ".[0] | (.client | startswith(\"$A4:\")) and .server == \"$B4:7350\"" || return
	in_trace '[.[0].steps[].message // empty] | unique - ["MRA"] == ["DREP", "DREQ", "REP", "REQ", "RTU"]' || return
	# As many as were counted, and each received after it was sent.
	in_trace "[.[0].steps[] | select(.message == \"REQ\" and .\"sent-us\")] | length == $(($(sent_reqs) - before))" || return
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
	local server client
	run_rping "$PEER" 90 -s -a "$B4" -p 7352 -C 1 & server=$!
	await_listener "comm rping" || return
	# The answers are lost for a while. The other connection has another port.
	$PEER tc qdisc add dev v1 root netem loss 100% || return
	trace -j "$B4:7352" || return
	run_rping "" 60 -c -a "$B4" -p 7352 -C 1 & client=$!
	pause 2
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

# object WANT ARGUMENT...: it prints one object, of these values in this order.
object() {
	local want=$1 got
	shift
	got=$("$TOOL" -j "$@" | jq -sc 'map([.. | scalars])')
	[ "$got" = "[[$want]]" ] || fail "$*: $got"
}

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

# A server of the user and clients of both; SERVER and CLIENTS are their numbers.
CLIENTS=() MONITORS=()
serve() {
	$PEER setpriv --reuid $OWNER --regid $OWNER --clear-groups rping -s -P -a "$B4" -p 7330 & SERVER=$!
	await_listener "comm rping"
}

# connect UID: a client that stays connected.
connect() {
	setpriv --reuid "$1" --regid "$1" --clear-groups rping -c -a "$B4" -p 7330 >/dev/null & CLIENTS+=($!)
}

established() {
	[ "$(json 'map(select(."cm-state" == "established")) | length' show connections)" -eq "$1" ]
}

stop() {
	kill "${CLIENTS[@]}" "$SERVER" && wait
	CLIENTS=()
	wait_for 10 no_cm_ids
}

connections() {
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
	local age
	age=$(json 'map(."age-ms") | min' show connections)
	[ "$age" -gt 0 ] && [ "$age" -lt 120000 ] || fail "age $age" || return
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

# The server is stopped, so that the request waits until its deadline.
deadline() {
	local start before
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" || return
	"$TOOL" tune set rxe0/1 deadline-ms=700 || return
	[ "$(json '.[] | select(."dev-name" == "rxe0")."deadline-ms"' tune)" -eq 700 ] || return
	start=$(date +%s)
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 2>"$TMP/err" >"$TMP/out" || return
	[ $(($(date +%s) - start)) -le $((10 * PATIENCE)) ] || fail "no deadline" || return
	grep -q UNREACHABLE "$TMP/out" "$TMP/err" || fail "$(cat "$TMP/out" "$TMP/err")" || return
	kill -CONT "$(peer_json '.[0].pid' show listeners)" || return
	# Nothing changes if any of it is wrong.
	before=$(json . tune)
	ends_with 2 "$TOOL" tune set rxe0 timewait=3 max-retries=16 && ends_with 2 "$TOOL" tune set rxe9 timewait=3 &&
		ends_with 2 "$TOOL" tune set rxe0 retries=3 || return
	ends_with 4 as $OWNER "$TOOL" tune set rxe0 timewait=3 || return
	ends_with 4 unshare --user --map-root-user "$TOOL" tune set rxe0 timewait=3 || return
	[ "$(json . tune)" = "$before" ] || fail "$(json . tune)" || return
	# Configfs shows the same.
	[ ! -d /sys/kernel/config ] || mount -t configfs none /sys/kernel/config 2>/dev/null || :
	mkdir /sys/kernel/config/rdma_cm/rxe0 &&
		[ "$(</sys/kernel/config/rdma_cm/rxe0/ports/1/cm_deadline_ms)" -eq 700 ] &&
		rmdir /sys/kernel/config/rdma_cm/rxe0 || return
	"$TOOL" tune set rxe0 deadline-ms=0 && stop
}
check "tune: a deadline holds from the next request on; nothing half done" deadline

# --- cm.conf ---

CONF=/etc/rdma/cm.conf

# conf LINE...: the file has these lines.
conf() {
	mkdir -p "${CONF%/*}" && printf '%s\n' "$@" >"$CONF"
}

# tuned DEVICE TUNABLE: its value, and where it comes from.
tuned() {
	json ".[] | select(.\"dev-name\" == \"$1\") | \"\\(.\"$2\") \\(.from[] | select(.name == \"$2\").from)\"" tune
}

# is_tuned DEVICE TUNABLE "VALUE FROM"
is_tuned() {
	[ "$(tuned "$1" "$2")" = "$3" ] || fail "$1 $2: $(tuned "$1" "$2") in place of $3"
}

# The object says what has been set, and which file has it.
changes() {
	conf '# Of the site.' || return
	object '"rxe0",1,"max-retries",4,15,"'"$CONF"'"' tune set --save rxe0 max-retries=4 && is_tuned rxe0 max-retries "4 device" ||
		return
	object '"rxe0",1,"max-retries",5,4,"timewait",3,22' tune set rxe0/1 max-retries=5 timewait=3 &&
		is_tuned rxe0 timewait "3 hand" || return
	object '"rxe0",1,"max-retries",4,5' tune apply && is_tuned rxe0 max-retries "4 device" || return
	[ -z "$("$TOOL" tune apply)$("$TOOL" tune set rxe0 max-retries=15 timewait=22)" ] && conf && object "" tune apply || return
	# A failure is a line in either case.
	ends_with 2 "$TOOL" -j tune set rxe0 max-retries=16 && [ ! -s "$TMP/out" ] &&
		grep -qx 'rdma-cm: max-retries is a number from 0 to 15' "$TMP/err" || fail "$(cat "$TMP/out" "$TMP/err")" || return
	ends_with 2 "$TOOL" -j stat --openmetrics && ends_with 2 "$TOOL" stat --prometheus -j
}
check "tune, as JSON: what was set, and what it was before" changes

origins() {
	ends_with 0 "$TOOL" tune apply && is_tuned rxe0 max-retries "15 default" || return
	conf 'all max-retries=7 deadline-ms=9000' 'rxe0 deadline-ms=8000' 'rxe0/1 timewait=3' 'other max-retries=1' || return
	# A value of the file holds when it is applied.
	is_tuned rxe0 max-retries "15 hand" && ends_with 0 "$TOOL" tune apply rxe0 && is_tuned rxe0 max-retries "7 host" &&
		is_tuned rxe0 deadline-ms "8000 device" && is_tuned rxe0 timewait "3 port" &&
		is_tuned rxe0 response-timeout "20 default" || return
	"$TOOL" tune set rxe0 max-retries=5 && is_tuned rxe0 max-retries "5 hand" || return
	grep -q '^rxe0/1 *max-retries *5 *15 *15 *by hand, line 1 has 7$' <<<"$("$TOOL" tune)" || fail "$("$TOOL" tune)" || return
	"$TOOL" tune set rxe0 early-retry-ms=100 && ends_with 0 "$TOOL" tune apply && is_tuned rxe0 max-retries "7 host" &&
		is_tuned rxe0 early-retry-ms "100 hand" || return
	"$TOOL" tune | awk 'length > 80 { exit 1 }' || fail "$("$TOOL" tune)" || return
	ends_with 2 "$TOOL" tune apply rxe9 && ends_with 4 as $OWNER "$TOOL" tune apply
}
check "cm.conf: apply, and where each value comes from" origins

saved() {
	conf '# Of the site.' 'rxe0 deadline-ms=8000 # slow' || return
	ends_with 0 "$TOOL" tune set --save rxe0 max-retries=4 && ends_with 0 "$TOOL" tune set --save all timewait=5 || return
	[ "$(cat "$CONF")" = "# Of the site.
rxe0 deadline-ms=8000 max-retries=4 # slow
all timewait=5" ] || fail "$(cat "$CONF")" || return
	is_tuned rxe0 max-retries "4 device" && is_tuned rxe0 timewait "5 host" || return
	# Nothing changes, in the kernel or in the file, if any of it is wrong or not permitted.
	local before
	before=$(cat "$CONF" && json . tune)
	ends_with 2 "$TOOL" tune set --save rxe0 max-retries=16 && ends_with 2 "$TOOL" tune set --save rxe9 max-retries=1 &&
		ends_with 4 as $OWNER "$TOOL" tune set --save rxe0 max-retries=1 || return
	chmod 777 "${CONF%/*}" && ends_with 4 as $OWNER "$TOOL" tune set --save rxe0 max-retries=1 && chmod 755 "${CONF%/*}" ||
		return
	[ "$(ls "${CONF%/*}")" = "$files" ] && [ "$(cat "$CONF" && json . tune)" = "$before" ] || fail "$(cat "$CONF")"
}
conf && files=$(ls "${CONF%/*}")
check "cm.conf: set --save sets and writes, or neither" saved

faulty() {
	conf 'rxe0 max-retries=9' 'rxe0 timewait=7 max-retries=16' 'rxe0/1 deadlin-ms=1' 'rxe0' 'all timewait=8' || return
	ends_with 0 "$TOOL" tune set rxe0 timewait=22 deadline-ms=0 || return
	"$TOOL" tune apply 2>"$TMP/err"
	[ $? -eq 5 ] || fail "no status 5" || return
	diff - "$TMP/err" <<-EOF || return
		rdma-cm: $CONF:2: max-retries is a number from 0 to 15
		rdma-cm: $CONF:3: no tunable deadlin-ms: there are response-timeout, max-retries, deadline-ms, timewait, early-retry-ms, backlog-parking, reuseport, dead-link-ms, keepalive-s
		rdma-cm: $CONF:4: no NAME=VALUE for rxe0
	EOF
	is_tuned rxe0 max-retries "9 device" && is_tuned rxe0 timewait "8 host" && is_tuned rxe0 deadline-ms "0 default"
}
check "cm.conf: a wrong line does nothing, is told of, and the others count" faulty

# The rule of the package, and udev as on a host.
watch_devices() {
	cp "$TOOL" /usr/bin/rdma-cm && mkdir -p /run/udev/rules.d /run/sysctl.d &&
		cp /mnt/repo/debian/90-rdma-cm.rules /run/udev/rules.d/ || return
	/usr/lib/systemd/systemd-udevd --daemon && wait_for 10 udevadm control --ping
}

plugged() {
	conf 'rxe0 max-retries=6' 'all timewait=4' || return
	watch_devices || fail "no udev" || return
	# A device that comes back, and one that is new.
	rdma link del rxe0 && rdma link add rxe0 type rxe netdev v0 && wait_for 20 is_tuned rxe0 max-retries "6 device" &&
		wait_for 20 is_tuned rxe0 timewait "4 host" || fail "$("$TOOL" tune)" || return
	ip link add w0 type veth peer name w1 && rdma link add new0 type rxe netdev w0 &&
		wait_for 20 is_tuned new0 timewait "4 host" || fail "$("$TOOL" tune)" || return
	# Devices that are there stay as they were set.
	"$TOOL" tune set rxe0 max-retries=2 && rdma link del new0 && rdma link add new0 type rxe netdev w0 &&
		wait_for 20 is_tuned new0 timewait "4 host" && is_tuned rxe0 max-retries "2 hand" || return
	udevadm settle && rdma link del new0 && ip link del w0
}
check "cm.conf: a device that comes, by udev" plugged

# load_again: udev has the indexes of modules open, which cm-use would unmount.
load_again() {
	wait_for 10 rmmod rust_rdma_cm && modprobe rust_rdma_cm
}

# A server and a client see what the file says: the request waits until its deadline.
reloaded() {
	conf 'rxe0 deadline-ms=700' || return
	echo 'net.rdma_ucm.max_user_listeners = 77' >/run/sysctl.d/rdma.conf || return
	load_again || return
	wait_for 20 is_tuned rxe0 deadline-ms "700 device" || fail "$("$TOOL" tune)" || return
	udevadm settle
	[ "$(</proc/sys/net/rdma_ucm/max_user_listeners)" = 77 ] || fail "no limit of sysctl.d" || return
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" || return
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	grep -q UNREACHABLE "$TMP/out" || fail "$(cat "$TMP/out")" || return
	kill -CONT "$(peer_json '.[0].pid' show listeners)" && stop || return
	rm /run/sysctl.d/rdma.conf "$CONF"
	load_again && udevadm settle && is_tuned rxe0 deadline-ms "0 default" &&
		[ "$(</proc/sys/net/rdma_ucm/max_user_listeners)" = 16384 ]
}
if [ -z "$CM_BUILT_IN" ]; then
	check "cm.conf: the module is loaded again, by udev" reloaded
else
	skip "cm.conf: the module is loaded again, by udev" "the module is built in"
fi
udevadm control --exit
wait_for 10 eval '! pgrep systemd-udevd'
rm -rf /run/udev/rules.d "$CONF" /usr/bin/rdma-cm

# listen NAME [PREFIX...]: a monitor whose events go to $TMP/NAME; its number is MONITOR.
listen() {
	local name=$1
	shift
	"$@" "$TOOL" -j monitor >"$TMP/$name" & MONITOR=$!
	MONITORS+=($MONITOR)
	wait_for 20 hears "$MONITOR" "$@" || fail "no monitor: $("$@" cat /proc/net/netlink)"
}

# deaf: the monitors end, as a user ends them.
deaf() {
	local monitor
	for monitor in "${MONITORS[@]}"; do
		kill -INT "$monitor" && wait "$monitor" || fail "a monitor: $?" || return
	done
	MONITORS=()
}

# heard NAME FILTER: is there such an event?
heard() {
	jq -es "map(select($2)) | length > 0" "$TMP/$1" >/dev/null
}

# expect NAME FILTER: there is such an event soon.
expect() {
	wait_for 20 heard "$@" || fail "$1: no $2 in $(cat "$TMP/$1")"
}

# Nobody listens on the port.
refuse() {
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7331 -C 1 >"$TMP/out" 2>&1
}

refused_events() {
	local reason='."reason-name" == "invalid service ID" and .reason == 8'
	ip netns add third && ip -n third link set lo up || return
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER && listen third ip netns exec third || return
	refuse || return
	expect own ".event == \"refused\" and .refusal == \"received\" and $reason and .dst == \"$B4:7331\" and
		(.src | startswith(\"$A4:\")) and .\"dev-name\" == \"rxe0\" and .port == 1" || return
	expect peer ".event == \"refused\" and .refusal == \"sent\" and $reason and .src == \"$B4:7331\" and
		(.dst | startswith(\"$A4\")) and .\"dev-name\" == \"rxe1\" and .\"service-id\" == 17177763" || return
	# Each namespace has its own events, once.
	[ "$(jq -s length "$TMP/own")" -eq 1 ] || fail "$(cat "$TMP/own")" || return
	! heard peer '.refusal == "received"' || fail "$(cat "$TMP/peer")" || return
	[ ! -s "$TMP/third" ] || fail "$(cat "$TMP/third")" || return
	deaf && ip netns del third || return
	# As a line.
	"$TOOL" monitor >"$TMP/lines" & MONITORS=($!)
	as_line() {
		refuse && grep -Eq "^[0-9-]+T[0-9:.]+Z rxe0/1 refused $A4:[0-9]+ > $B4:7331: REJ received, invalid service ID \\(8\\)$" \
			"$TMP/lines"
	}
	wait_for 20 as_line || fail "$(cat "$TMP/lines")" || return
	deaf
}
check "monitor: a refusal, at both ends and nowhere else" refused_events

# Datagrams to a port on which nobody listens.
refused_datagrams() {
	local reason='.phase == "sidr-req" and ."reason-name" == "service ID not supported" and .reason == 1'
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER || return
	! timeout $((30 * PATIENCE)) udaddy -s "$B4" -c 1 >"$TMP/out" 2>&1 || fail "it is served" || return
	expect own ".event == \"refused\" and .refusal == \"received\" and $reason and .dst == \"$B4:7174\" and
		.\"dev-name\" == \"rxe0\" and .port == 1" || return
	expect peer ".event == \"refused\" and .refusal == \"sent\" and $reason and .src == \"$B4:7174\" and
		(.dst | startswith(\"$A4\")) and .\"dev-name\" == \"rxe1\"" || return
	[ "$(jq -s length "$TMP/own") $(jq -s length "$TMP/peer")" = "1 1" ] || fail "$(cat "$TMP/own" "$TMP/peer")" || return
	deaf
}
check "monitor: a refused datagram, at both ends" refused_datagrams

refused_iwarp() {
	local status=0
	siw0 && listen own || return
	! timeout $((30 * PATIENCE)) rping -c -a "$C4" -p 7333 -C 1 >"$TMP/out" 2>&1 || fail "it is served" || status=1
	expect own ".event == \"refused\" and .refusal == \"received\" and .\"reason-name\" == \"connection refused\" and
		.reason == null and .dst == \"$C4:7333\" and .\"dev-name\" == \"siw0\"" || status=1
	deaf && no_siw0 && return "$status"
}
if has_siw; then
	check "monitor: a refusal over iWARP" refused_iwarp
else
	skip "monitor: a refusal over iWARP" "there is no siw"
fi

# The server is stopped, and nobody has the other address.
gave_up_events() {
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" && "$TOOL" tune set rxe0 deadline-ms=700 || return
	listen own || return
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	expect own ".event == \"gave-up\" and .phase == \"req\" and .retries >= 0 and .dst == \"$B4:7330\" and .port == 1" || return
	! timeout $((60 * PATIENCE)) rping -c -a "${A4%.*}.77" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	expect own ".event == \"gave-up\" and .phase == \"address\" and .dst == \"${A4%.*}.77:7330\"" || return
	"$TOOL" tune set rxe0 deadline-ms=0 && kill -CONT "$(peer_json '.[0].pid' show listeners)" && deaf && stop
}
check "monitor: a peer that does not answer" gave_up_events

limit_events() {
	local limit before
	limit=/proc/sys/net/rdma_ucm/max_user_ids before=$(</proc/sys/net/rdma_ucm/max_user_ids)
	serve && connect $OWNER && wait_for 20 established 1 && listen own || return
	echo 1 >"$limit"
	! as $OWNER timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || fail "no limit" || return
	echo "$before" >"$limit"
	expect own ".event == \"limit\" and .uid == $OWNER and .resource[0] == {\"name\": \"ids\", \"limit\": 1}" || return
	deaf && stop
}
check "monitor: a limit that a user has reached" limit_events

device_events() {
	local connections
	serve && connect $OWNER && connect $OTHER && wait_for 20 established 2 || return
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER || return
	timeout $((60 * PATIENCE)) $PEER rdma link del rxe1 || return
	expect peer '.event == "device-gone" and ."dev-name" == "rxe1" and .connections >= 2' || return
	connections=$(jq -s 'map(select(.event == "device-gone" and .connections > 0)) | length' "$TMP/own")
	[ "$connections" -eq 0 ] || fail "$(cat "$TMP/own")" || return
	deaf && kill "${CLIENTS[@]}" "$SERVER"
	wait
	CLIENTS=()
	$PEER rdma link add rxe1 type rxe netdev v1 && wait_for 20 no_cm_ids && serve && connect $OWNER &&
		wait_for 20 established 1 && stop
}
check "monitor: a device that goes, with its connections" device_events

who_listens() {
	ends_with 4 as $OWNER "$TOOL" monitor || return
	grep -q "not permitted" "$TMP/err" || return
	# The administrator of a container sees what is there.
	as $OWNER unshare --user --map-root-user --net timeout --preserve-status -s TERM 3 "$TOOL" monitor >"$TMP/out" ||
		fail "status $?" || return
	[ ! -s "$TMP/out" ]
}
check "monitor: for those with CAP_NET_ADMIN in the namespace" who_listens

# flood N: so many refused connections, 20 at a time.
flood() {
	/mnt/share/cmstorm client -a "$B4" -p 7331 -n "$1" -f 20 -t $((60 * PATIENCE)) >"$TMP/out" 2>&1 || :
}

flood_events() {
	local received start
	listen own || return
	start=$SECONDS
	flood 1000
	all() {
		[ "$(jq -s '[.[] | select(.refusal == "received" or .event == "lost") | .lost // 1] | add' "$TMP/own")" -ge 1000 ]
	}
	wait_for 20 all || fail "$(jq -sc 'group_by(.event) | map([.[0].event, length])' "$TMP/own")" || return
	received=$(jq -s 'map(select(.event == "refused")) | length' "$TMP/own")
	# 100 at once, and 50 a second.
	[ "$received" -ge 100 ] && [ "$received" -le $((100 + 50 * (SECONDS - start + 1))) ] || fail "$received events" || return
	expect own '.event == "lost" and ."dev-name" == "rxe0" and .port == 1 and .lost > 0' || return
	deaf
}
check "monitor: a flood is a bounded number of events, and all are counted" flood_events

# It does not read, and has room for little.
deaf_monitor() {
	local room
	room=$(</proc/sys/net/core/rmem_default)
	echo 4608 >/proc/sys/net/core/rmem_default
	listen slow
	echo "$room" >/proc/sys/net/core/rmem_default
	[ "${#MONITORS[@]}" -eq 1 ] || return
	kill -STOP "$MONITOR" && listen own || return
	flood 60
	serve && connect $OWNER && wait_for 20 established 1 || return
	expect own '.event == "refused"' || return
	kill -CONT "${MONITORS[0]}" || return
	expect slow '.event == "overrun"' || return
	refuse || return
	expect slow '.event == "refused"' || return
	deaf && stop
}
check "monitor: one that does not read disturbs nobody" deaf_monitor

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
	kill -0 "$churn" || fail "nothing was made meanwhile" || return
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
