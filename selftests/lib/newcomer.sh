#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest of selftests/walkthrough.sh, the user's shell: types a part of Documentation/walkthrough.rst. Prints what is
# typed and what that prints, but "..." for what apt tells; and on the standard error how long it took.

status=0
told=$(mktemp)

# The guest's output has its end.
end() {
	sync
	echo "exit $status" | sudo tee /dev/virtio-ports/ctl >/dev/null
}

# If the kernel has a driver for the adapter, rdma-core has loaded what goes with it.
systemctl is-system-running --wait >/dev/null
if [ -e /sys/class/infiniband/rxe0 ]; then
	for _ in {1..60}; do
		! systemctl -q is-active rdma-load-modules@rdma.service || break
		sleep 1
	done
fi
echo "$(cut -d ' ' -f 1 /proc/uptime) s until the first command" >&2
while IFS= read -r line <&3; do
	echo "\$ $line"
	SECONDS=0
	case $line in
	"sudo apt "*)
		if eval "$line" <<<y >"$told" 2>&1; then
			echo ...
		else
			cat "$told"
			status=1
		fi
		;;
	*\&)
		# A server is there before its client.
		eval "$line" 2>&1 </dev/null
		sleep 5
		;;
	"sudo reboot")
		end
		sudo reboot
		exit
		;;
	*) eval "$line" 2>&1 </dev/null ;;
	esac
	echo "$SECONDS s: $line" >&2
done 3<.commands
end
sudo poweroff
