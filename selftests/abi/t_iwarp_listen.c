// SPDX-License-Identifier: GPL-2.0
/* Listeners over iWARP, and devices that come and go. */
#include <rust_rdma_cm.h>
#include "iwarp.h"

TEST(iwarp, backlog)
{
	struct rdma_ucm_event_resp ev;
	uint32_t other;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	listening(s, 7911, 1);
	asking(c, 7911);
	CHECK(no_event(c, 500));
	other = asking(c, 7911);
	NEED_EVENT(c, EV_REJECTED, &ev);
	CHECK_EQ(other, ev.id);
	NEED_EVENT(s, EV_CONNECT_REQUEST, NULL);
}

TEST(iwarp, listener)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	id = listening(f, 7912, 3);
	CHECK_ERR(EINVAL, disconnect_id(f, id));
	CHECK_ERR(EINVAL, reject_id(f, id, NULL, 0, 0));
	CHECK_OK(notify_id(f, id, 4));
	CHECK_ERR(EINVAL, listen_id(f, id, 3));
	for (uint32_t state = 0; state <= 6; state++)
		CHECK_ERR(EINVAL, init_qp_attr(f, id, state, &attr));
	/* The port is free as soon as the listener is gone. */
	for (int i = 0; i < 20; i++) {
		REQUIRE_ID(destroy_id(f, id));
		id = listening(f, 7912, 3);
	}
}

TEST(iwarp, address_in_use)
{
	union addr a = addr4(IWARP4, 7913), any = addr4("0.0.0.0", 7913);
	struct footprint had, has;
	uint32_t id, wildcard;
	const char *changed;
	int f, tcp, one = 1;

	need_device();
	f = fd();
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE_OK(bind(tcp, &a.sa, sizeof(a.in)));
	REQUIRE_OK(listen(tcp, 1));
	id = bound(f, PS_TCP, 7913);
	CHECK_ERR(EADDRINUSE, listen_id(f, id, 1));
	REQUIRE_ID(destroy_id(f, id));
	close(tcp);

	tcp = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE_OK(bind(tcp, &any.sa, sizeof(any.in)));
	REQUIRE_OK(listen(tcp, 1));
	wildcard = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(set_option(f, wildcard, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	REQUIRE_OK(bind_addr(f, wildcard, &any));
	footprint(&had, f, wildcard);
	CHECK_ERR(EADDRINUSE, listen_id(f, wildcard, 1));
	/* A late failure leaves no more behind than an early one. */
	footprint(&has, f, wildcard);
	changed = footprint_differs(&had, &has);
	if (differs("listen_loses_reuseaddr"))
		CHECK(changed && strcmp(changed, "what can be bound beside it") == 0);
	else if (changed)
		fail(__FILE__, __LINE__, "LISTEN fails, and changes %s", changed);
	close(tcp);
	REQUIRE_OK(listen_id(f, wildcard, 1));
}

/* Returns true if a TCP server can have the port for IPv4. */
static bool is_free_for_ipv4(uint16_t port)
{
	union addr any = addr4("0.0.0.0", port);
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	bool is_free = bind(tcp, &any.sa, sizeof(any.in)) == 0 && listen(tcp, 1) == 0;

	close(tcp);
	return is_free;
}

/* A wildcard of IPv6 is one of IPv4, too, unless it is told not to be; also where the device comes later. */
TEST(iwarp, wildcard_of_one_family)
{
	for (int afonly = 0; afonly < 2; afonly++) {
		union addr any = addr6("::", 7922 + afonly);
		uint32_t id;
		int f;

		need_device();
		release_device();
		f = fd();
		id = REQUIRE_ID(create_id(f, PS_TCP, 1));
		REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_AFONLY, &afonly, 4));
		REQUIRE_OK(bind_addr(f, id, &any));
		REQUIRE_OK(listen_id(f, id, 1));
		CHECK_EQ(afonly, is_free_for_ipv4(7922 + afonly));
		REQUIRE_EQ(0, run_within(20, "rdma link del siw0"));
		CHECK(is_free_for_ipv4(7922 + afonly));
		REQUIRE_EQ(0, system("rdma link add siw0 type siw netdev w0"));
		CHECK_EQ(afonly, is_free_for_ipv4(7922 + afonly));
	}
}

/* The driver has one listener for an address. */
TEST(iwarp, one_listener_of_those_that_share)
{
	union addr at[] = { addr4(IWARP4, 7925), addr4("0.0.0.0", 7926) };
	unsigned int one = 1;
	int f;

	if (!is_rust())
		skip("C has no REUSEPORT");
	need_device();
	f = fd();
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		uint32_t id[2];

		for (int n = 0; n < 2; n++) {
			id[n] = REQUIRE_ID(create_id(f, PS_TCP, 1));
			REQUIRE_OK(set_option(f, id[n], RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_REUSEPORT, &one, 4));
			REQUIRE_OK(bind_addr(f, id[n], &at[i]));
		}
		REQUIRE_OK(listen_id(f, id[0], 1));
		CHECK_ERR(EADDRINUSE, listen_id(f, id[1], 1));
		REQUIRE_ID(destroy_id(f, id[0]));
		CHECK_OK(listen_id(f, id[1], 1));
	}
}

TEST(iwarp, wildcard)
{
	union addr dst = addr4(IWARP4, 7914);
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_event_resp ev;
	uint32_t id;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	id = listening_anywhere(s, 7914);
	CHECK_ERR(EINVAL, disconnect_id(s, id));
	asking(c, 7914);
	NEED_EVENT(s, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(0x99, ev.uid);
	REQUIRE_OK(query_addr(s, ev.id, &addr));
	CHECK_MEM(&dst, &addr.src_addr, 8);
	CHECK_EQ(1, addr.port_num);
	/* A request that was read outlives its listener. */
	REQUIRE_ID(destroy_id(s, id));
	CHECK_OK(reject_id(s, ev.id, NULL, 0, 0));
	NEED_EVENT(c, EV_REJECTED, NULL);
}

TEST(iwarp, unread_request_goes_with_its_listener)
{
	uint32_t id;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	id = listening(s, 7915, 0);
	asking(c, 7915);
	CHECK(no_event(c, 300));
	REQUIRE_ID(destroy_id(s, id));
	NEED_EVENT(c, EV_REJECTED, NULL);
}

TEST(iwarp, loopback_addresses)
{
	union addr dst = addr4("127.0.0.1", 7471);
	struct rdma_ucm_query_addr_resp addr;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	/* The first device there is, which may be of another kind. */
	if (resolve_addr(f, id, NULL, &dst, 1000) == 0) {
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK(addr.ibdev_index != 0xffffffff);
	}
}

TEST(iwarp, device_removed)
{
	uint32_t listener, client, idle;
	struct rdma_ucm_event_resp ev;
	struct ends e = { 0 };
	int f;

	need_device();
	established(&e, 7919);
	f = fd();
	listener = listening(f, 7920, 0);
	idle = bound(f, PS_TCP, 0);
	client = e.client;
	/* It does not wait for ids. */
	REQUIRE_EQ(0, system("(rdma link del siw0; echo $? >/tmp/siw0-gone) &"));
	for (int i = 0; i < 2; i++) {
		NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
		CHECK(ev.id == listener || ev.id == idle);
	}
	do
		REQUIRE_EQ(0, wait_event(e.c, &ev, 5000) < 0);
	while (ev.event != EV_DEVICE_REMOVAL);
	CHECK_EQ(client, ev.id);
	for (int i = 0; i < 200 && disconnect_id(e.c, client) != -ENXIO; i++)
		usleep(10000);
	CHECK_ERR(ENXIO, disconnect_id(e.c, client));
	CHECK_ERR(ENXIO, disconnect_id(f, listener));
	release_device();
	for (int i = 0; i < 1000 && read_number("/tmp/siw0-gone") < 0; i++)
		usleep(10000);
	CHECK_EQ(0, read_number("/tmp/siw0-gone"));
	unlink("/tmp/siw0-gone");
	REQUIRE_ID(destroy_id(e.c, client));
	REQUIRE_ID(destroy_id(f, listener));
	REQUIRE_EQ(0, system("rdma link add siw0 type siw netdev w0"));
}

TEST(iwarp, wildcard_takes_in_a_device_that_comes)
{
	int s, c;

	need_device();
	release_device();
	s = fd();
	c = fd();
	listening_anywhere(s, 7921);
	REQUIRE_EQ(0, run_within(20, "rdma link del siw0"));
	CHECK(no_event(s, 100));
	REQUIRE_EQ(0, system("rdma link add siw0 type siw netdev w0"));
	need_device();
	asking(c, 7921);
	NEED_EVENT(s, EV_CONNECT_REQUEST, NULL);
}
