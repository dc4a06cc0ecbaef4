// SPDX-License-Identifier: GPL-2.0
/*
 * Beside a part of the kernel that listens on the service id of the TCP port 7490 at the device: what
 * LISTEN does that fails late. To be run where consumer.sh has loaded that.
 */
#include "abi.h"

#define PORT 7490

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t shared(int f)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	int one = 1;

	REQUIRE_OK(set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	return id;
}

/* The address of the device, or any. If the port is not shared any more, binding fails with "taken". */
static void listen_fails(const char *ip, int taken)
{
	struct footprint had, has;
	int f = fd();
	uint32_t a = shared(f), b = shared(f);
	const char *changed;

	REQUIRE_OK(bind4(f, a, ip, PORT));
	footprint(&had, f, a);
	REQUIRE(listen_id(f, a, 1) == -EINVAL);
	footprint(&has, f, a);
	changed = footprint_differs(&had, &has);
	if (differs("listen_loses_reuseaddr"))
		CHECK(changed && strcmp(changed, "what can be bound beside it") == 0);
	else if (changed)
		fail(__FILE__, __LINE__, "LISTEN fails, and changes %s", changed);
	CHECK_ERR(differs("listen_loses_reuseaddr") ? taken : 0, bind4(f, b, ip, PORT));
	/* It fails again for the same reason. */
	CHECK_ERR(EINVAL, listen_id(f, a, 1));
}

TEST(beside, listen_on_an_address)
{
	listen_fails(ADDR4, EADDRINUSE);
}

TEST(beside, listen_on_the_wildcard)
{
	listen_fails("0.0.0.0", EADDRNOTAVAIL);
}

TEST(beside, listen_on_another_port)
{
	int f = fd();
	uint32_t id = shared(f);

	REQUIRE_OK(bind4(f, id, ADDR4, PORT + 1));
	CHECK_OK(listen_id(f, id, 1));
}
