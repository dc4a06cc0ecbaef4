// SPDX-License-Identifier: GPL-2.0
/* Ids that share their address and port (REUSEPORT), which only the Rust module has. */
#include <grp.h>
#include <sys/stat.h>

#include "members.h"

#define PORT 7600
/* The most listeners that share an address. */
#define MOST 128

static int file(void)
{
	if (!is_rust())
		skip("C has no REUSEPORT");
	return cm_open(O_RDWR | O_NONBLOCK);
}

static void listener_at(int f, const union addr *a)
{
	uint32_t id = sharer(f, PS_TCP, QPT_RC);

	REQUIRE_OK(bind_addr(f, id, a));
	REQUIRE_OK(listen_id(f, id, 8));
}

/* From here on this process is another user, without capabilities. */
static void become_another(void)
{
	REQUIRE(setgroups(0, NULL) == 0);
	REQUIRE(setresgid(1000, 1000, 1000) == 0);
	REQUIRE(setresuid(1000, 1000, 1000) == 0);
}

TEST(reuseport, members_listen_at_one_address)
{
	union addr addresses[] = { addr4(ADDR4, PORT), addr4("0.0.0.0", PORT + 1), addr6("::", PORT + 2) };
	int f = file(), other = file();

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		uint32_t id;

		listener_at(f, &addresses[i]);
		listener_at(f, &addresses[i]);
		listener_at(other, &addresses[i]);
		/* Nobody who does not share it has a place. */
		id = REQUIRE_ID(create_id(f, PS_TCP, 1));
		CHECK_ERR(i ? EADDRNOTAVAIL : EADDRINUSE, bind_addr(f, id, &addresses[i]));
	}
}

TEST(reuseport, all_have_to_share)
{
	union addr a = addr4(ADDR4, PORT);
	int f = file();
	uint32_t first = REQUIRE_ID(create_id(f, PS_TCP, 1)), second = sharer(f, PS_TCP, QPT_RC);

	REQUIRE_OK(share(f, first, 1));
	REQUIRE_OK(share(f, first, 0));
	REQUIRE_OK(bind_addr(f, first, &a));
	CHECK_ERR(EADDRINUSE, bind_addr(f, second, &a));
	REQUIRE_ID(destroy_id(f, first));
	CHECK_OK(bind_addr(f, second, &a));
}

/* It says who may bind the address, and that was decided. */
TEST(reuseport, not_after_bind)
{
	union addr a = addr4(ADDR4, PORT);
	int f = file();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1)), second = sharer(f, PS_TCP, QPT_RC);

	REQUIRE_OK(bind_addr(f, id, &a));
	CHECK_ERR(EINVAL, share(f, id, 1));
	CHECK_ERR(EINVAL, share(f, id, 0));
	CHECK_ERR(EADDRINUSE, bind_addr(f, second, &a));
	CHECK_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, share(f, id, 1));
}

TEST(reuseport, another_user)
{
	union addr a = addr4(ADDR4, PORT), any = addr4("0.0.0.0", PORT + 1);
	int f = file(), other;

	listener_at(f, &a);
	listener_at(f, &any);
	become_another();
	other = file();
	CHECK_ERR(EADDRINUSE, bind_addr(other, sharer(other, PS_TCP, QPT_RC), &a));
	CHECK_ERR(EADDRINUSE, bind_addr(other, sharer(other, PS_TCP, QPT_RC), &any));
	/* The address is free for others when the last one has gone. */
	close(f);
	listener_at(other, &a);
	listener_at(other, &a);
}

/* The user is the one who has opened the file, as for all that is charged. */
TEST(reuseport, the_user_of_the_file)
{
	union addr a = addr4(ADDR4, PORT);
	int f = file();
	uint32_t id = sharer(f, PS_TCP, QPT_RC);

	listener_at(f, &a);
	REQUIRE_OK(bind_addr(f, id, &a));
	CHECK_OK(listen_id(f, id, 1));
}

TEST(reuseport, no_mixed_groups)
{
	union addr any4 = addr4("0.0.0.0", PORT), any6 = addr6("::", PORT), a = addr4(ADDR4, PORT);
	union addr other = addr4(ADDR4, PORT + 1);
	int f = file();

	listener_at(f, &any6);
	/* Another family, unless each has its own. */
	CHECK_ERR(EADDRINUSE, bind_addr(f, sharer(f, PS_TCP, QPT_RC), &any4));
	/* A part of what the others have. */
	CHECK_ERR(EADDRINUSE, bind_addr(f, sharer(f, PS_TCP, QPT_RC), &a));
	CHECK_OK(bind_addr(f, sharer(f, PS_TCP, QPT_RC), &any6));
	/* Other port spaces have ports of their own. */
	CHECK_OK(bind_addr(f, sharer(f, PS_UDP, QPT_UD), &a));
	/* The types of queue pairs differ: the requests for one would go to the other. */
	CHECK_OK(bind_addr(f, sharer(f, PS_IB, QPT_RC), &other));
	CHECK_ERR(EADDRINUSE, bind_addr(f, sharer(f, PS_IB, QPT_UD), &other));
	CHECK_OK(bind_addr(f, sharer(f, PS_IB, QPT_RC), &other));
}

TEST(reuseport, as_many_as_there_may_be)
{
	union addr a = addr4(ADDR4, PORT);
	int f = file();
	uint32_t id;

	for (int i = 0; i < MOST; i++)
		listener_at(f, &a);
	id = sharer(f, PS_TCP, QPT_RC);
	REQUIRE_OK(bind_addr(f, id, &a));
	CHECK_ERR(EMFILE, listen_id(f, id, 8));
}

/* A port of a device has a default, for ids that are bound to an address of it and do not say. */
TEST(reuseport, default_of_the_port)
{
	static const char root[] = "/sys/kernel/config/rdma_cm", dir[] = "/sys/kernel/config/rdma_cm/rxe0";
	static const char command[] = "echo %d >/sys/kernel/config/rdma_cm/rxe0/ports/1/cm_reuseport";
	union addr a = addr4(ADDR4, PORT), any = addr4("0.0.0.0", PORT + 1);
	int f = file();
	uint32_t id, says_no = REQUIRE_ID(create_id(f, PS_TCP, 1));
	char text[128];

	if (access(root, F_OK) != 0)
		skip("no %s", root);
	rmdir(dir);
	REQUIRE_EQ(0, mkdir(dir, 0755));
	snprintf(text, sizeof(text), command, 1);
	REQUIRE_EQ(0, system(text));
	for (int i = 0; i < 2; i++) {
		id = REQUIRE_ID(create_id(f, PS_TCP, 1));
		CHECK_OK(bind_addr(f, id, &a));
		CHECK_OK(listen_id(f, id, 1));
	}
	REQUIRE_OK(share(f, says_no, 0));
	CHECK_ERR(EADDRINUSE, bind_addr(f, says_no, &a));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_OK(bind_addr(f, id, &any));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, id, &any));
	snprintf(text, sizeof(text), command, 0);
	REQUIRE_EQ(0, system(text));
	CHECK_EQ(0, rmdir(dir));
}

/* A request that comes to a member is one of this member: its uid, and its file. */
TEST(reuseport, each_request_goes_to_one)
{
	union addr a = addr4(ADDR4, PORT);
	int f[2] = { file(), file() }, c = file(), got[2] = { 0 };

	listener_at(f[0], &a);
	listener_at(f[1], &a);
	for (int i = 0; i < 32; i++) {
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t id = routed_client(c, 1, &a);
		struct rdma_ucm_event_resp ev;

		REQUIRE_OK(connect_id(c, id, &param));
		for (int tries = 0; tries < 200 * patience(); tries++) {
			int to = wait_event(f[0], &ev, 10) == 0 ? 0 : wait_event(f[1], &ev, 10) == 0 ? 1 : -1;

			if (to < 0)
				continue;
			got[to]++;
			CHECK_EQ(EV_CONNECT_REQUEST, ev.event);
			CHECK_EQ(1, ev.uid);
			param = conn_param();
			REQUIRE_OK(accept_id(f[to], ev.id, 2, &param));
			NEED_EVENT(c, EV_CONNECT_RESPONSE, NULL);
			REQUIRE_OK(accept_id(c, id, 0, NULL));
			NEED_EVENT(f[to], EV_ESTABLISHED, NULL);
			break;
		}
	}
	note("%d and %d", got[0], got[1]);
	CHECK_EQ(32, got[0] + got[1]);
	CHECK(got[0] >= 4 && got[1] >= 4);
}

#define RECEIVED "/sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/"

static struct members asked(uint16_t ps, int backlog)
{
	struct members m = {
		.ps = ps, .addr = addr4(ADDR4, PORT), .backlog = backlog,
		.received = ps == PS_UDP ? RECEIVED "sidr_req" : RECEIVED "req",
	};

	members_listen(&m);
	members_asked(&m, NULL);
	return m;
}

static void moved(uint16_t ps, bool closes)
{
	struct members m = asked(ps, REQUESTS);

	members_move(&m, closes);
}

TEST(reuseport, requests_of_a_closed_file)
{
	moved(PS_TCP, true);
}

TEST(reuseport, requests_of_a_destroyed_listener)
{
	moved(PS_TCP, false);
}

TEST(reuseport, datagram_requests_of_a_closed_file)
{
	moved(PS_UDP, true);
}

TEST(reuseport, datagram_requests_of_a_destroyed_listener)
{
	moved(PS_UDP, false);
}

/* A service without room would refuse them. */
TEST(reuseport, datagram_requests_pass_by_a_full_member)
{
	struct members m = asked(PS_UDP, 1);

	CHECK_EQ(REQUESTS - 1, m.told);
	members_move(&m, true);
}
