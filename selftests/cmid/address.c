// SPDX-License-Identifier: GPL-2.0
/* Identifiers, their addresses and the way to others. */
#include "cmid.h"

void unused(void)
{
	struct rdma_cm_id *id;

	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	CHECK(!a.id->device);
	CHECK(!a.id->qp);
	CHECK(a.id->context == &a);
	IS(a.id->ps, RDMA_PS_TCP);
	IS(a.id->qp_type, IB_QPT_RC);
	is_in(&a, NEW);
	end(&a);
	IS(a.told, 0);
	/* Of the calling program, which is that of insmod. */
	id = rdma_create_user_id(NULL, &a, RDMA_PS_UDP, IB_QPT_UD);
	if (!CHECK(!IS_ERR(id)))
		return;
	CHECK(id->context == &a);
	IS(id->ps, RDMA_PS_UDP);
	rdma_destroy_id(id);
}

void texts(void)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_REJECTED };
	const char *data = "why";
	u8 len = 77;

	IS(strcmp(rdma_event_msg(RDMA_CM_EVENT_ADDR_RESOLVED), "address resolved"), 0);
	IS(strcmp(rdma_event_msg(RDMA_CM_EVENT_DEVICE_REMOVAL), "device removal"), 0);
	IS(strcmp(rdma_event_msg(RDMA_CM_EVENT_TIMEWAIT_EXIT), "timewait exit"), 0);
	IS(strcmp(rdma_event_msg(1000), "unrecognized event"), 0);
	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0) || !IS(bind(&a), 0))
		return end(&a);
	IS(strcmp(rdma_reject_msg(a.id, IB_CM_REJ_STALE_CONN), "stale conn"), 0);
	IS(strcmp(rdma_reject_msg(a.id, 1000), "unrecognized reason"), 0);
	event.status = IB_CM_REJ_CONSUMER_DEFINED;
	event.param.conn.private_data = data;
	event.param.conn.private_data_len = 4;
	CHECK(rdma_consumer_reject_data(a.id, &event, &len) == data);
	IS(len, 4);
	event.status = IB_CM_REJ_STALE_CONN;
	CHECK(!rdma_consumer_reject_data(a.id, &event, &len));
	IS(len, 0);
	end(&a);
}

static struct sockaddr *at6(u16 port, bool link_local)
{
	static struct sockaddr_in6 place;

	place = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (link_local)
		place.sin6_addr.s6_addr32[0] = htonl(0xfe800000);
	return (struct sockaddr *)&place;
}

static u16 port_of(struct side *side)
{
	return ntohs(((struct sockaddr_in *)&side->id->route.addr.src_addr)->sin_port);
}

void addresses(void)
{
	struct side other;
	u16 taken;

	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	IS(rdma_bind_addr(a.id, at(0xc0000201, 0)), -EADDRNOTAVAIL);
	IS(rdma_bind_addr(a.id, at6(0, true)), -EINVAL);
	is_in(&a, NEW);
	IS(bind(&a), 0);
	is_in(&a, BOUND);
	CHECK(a.id->device == dev);
	taken = port_of(&a);
	CHECK(taken);

	/* A port is for one, unless all share it; and so are all ports of an address. */
	if (!IS(create(&other, RDMA_PS_TCP, IB_QPT_RC), 0))
		return end(&a);
	IS(rdma_bind_addr(other.id, at(address, taken)), -EADDRINUSE);
	IS(rdma_bind_addr(other.id, at(0, taken)), -EADDRNOTAVAIL);
	is_in(&other, NEW);
	IS(rdma_set_reuseaddr(other.id, 0), 0);
	IS(rdma_bind_addr(other.id, at(address, taken)), -EADDRINUSE);
	IS(rdma_bind_addr(other.id, at(address, taken + 1)), 0);
	CHECK(other.id->device == dev);
	end(&other);
	end(&a);

	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0) ||
	    !IS(create(&other, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	IS(rdma_set_reuseaddr(a.id, 1), 0);
	IS(rdma_set_reuseaddr(other.id, 1), 0);
	IS(rdma_bind_addr(a.id, at(address, taken)), 0);
	IS(rdma_bind_addr(other.id, at(address, taken)), 0);
	IS(listen(&a), -EADDRINUSE);
	end(&other);
	IS(listen(&a), 0);
	is_in(&a, LISTENING);
	end(&a);

	/* Families, each with a wildcard of its own if it says so. */
	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0) ||
	    !IS(create(&other, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	IS(rdma_bind_addr(a.id, at(0, taken)), 0);
	CHECK(!a.id->device);
	is_in(&a, BOUND);
	IS(rdma_set_afonly(other.id, 0), 0);
	IS(rdma_bind_addr(other.id, at6(taken, false)), -EADDRNOTAVAIL);
	IS(rdma_set_afonly(other.id, 1), 0);
	IS(rdma_bind_addr(other.id, at6(taken, false)), 0);
	end(&other);
	end(&a);
}

void options(void)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask;

	if (!until_resolved())
		return stop();
	rdma_set_service_type(a.id, 0x20);
	IS(rdma_set_ack_timeout(a.id, 15), 0);
	IS(rdma_set_min_rnr_timer(a.id, 21), 0);
	IS(rdma_set_min_rnr_timer(a.id, 32), -EINVAL);
	if (!IS(resolve_route(&a), 0) || !expect(&a, ROUTE_RESOLVED))
		return stop();
	IS(a.id->route.path_rec->traffic_class, 0x20);
	IS(a.id->route.path_rec->packet_life_time, 14);
	if (!IS(connect(&a), 0) || !expect(&b, CONNECT_REQUEST) || !IS(accept_locked(&b), 0) ||
	    !expect(&a, CONNECT_RESPONSE))
		return stop();
	IS(rdma_init_qp_attr(a.id, &attr, &mask), 0);
	IS(attr.min_rnr_timer, 21);
	IS(attr.ah_attr.grh.traffic_class, 0x20);
	attr.qp_state = IB_QPS_RTS;
	IS(rdma_init_qp_attr(a.id, &attr, &mask), 0);
	IS(attr.timeout, 15);
	stop();

	/* Datagrams have no such timers. */
	if (!IS(create(&a, RDMA_PS_UDP, IB_QPT_UD), 0))
		return;
	IS(rdma_set_ack_timeout(a.id, 15), -EINVAL);
	end(&a);
}

/* An address in the network of the device that nobody has. */
static int resolve_nobody(struct side *side)
{
	return rdma_resolve_addr(side->id, NULL, at((address & ~0xffU) | 99, 1), 200);
}

void resolution(void)
{
	union ib_gid own, far;
	struct in6_addr mapped;

	/* Where nobody is, or nothing leads. */
	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	a.calls = true;
	IS(rdma_resolve_addr(a.id, NULL, at(0xc0000201, 1), 100), -ENETUNREACH);
	is_in(&a, BOUND);
	IS(resolve_nobody(&a), 0);
	is_in(&a, QUERY);
	expect_status(&a, ADDR_ERROR, -ETIMEDOUT);
	is_in(&a, BOUND);
	/* It may try again. */
	IS(resolve(&a), 0);
	if (expect(&a, ADDR_RESOLVED))
		is_in(&a, RESOLVED);
	end(&a);

	/* A source of one's own, which is not another's. */
	if (!IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	IS(rdma_resolve_addr(a.id, at(0xc0000201, 0), at(address, port), 1000), -EADDRNOTAVAIL);
	is_in(&a, NEW);
	IS(rdma_resolve_addr(a.id, at(address, 0), at(address, port), 1000), 0);
	expect(&a, ADDR_RESOLVED);
	end(&a);

	/* All of the way. */
	if (!until_resolved())
		return stop();
	a.calls = true;
	CHECK(a.id->device == dev);
	ipv6_addr_set_v4mapped(htonl(address), &mapped);
	rdma_read_gids(a.id, &own, &far);
	CHECK(!memcmp(&own, &mapped, sizeof(own)));
	CHECK(!memcmp(&far, &mapped, sizeof(far)));
	IS(a.id->route.num_pri_alt_paths, 0);
	is_in(&a, RESOLVED);
	/* While nobody can be told, the answer is on its way. */
	rdma_lock_handler(a.id);
	IS(resolve_route(&a), 0);
	calls_at(&a, ROUTE_QUERY, true, __LINE__);
	is_quiet(&a);
	rdma_unlock_handler(a.id);
	if (expect(&a, ROUTE_RESOLVED))
		is_in(&a, ROUTE_RESOLVED);
	IS(a.id->route.num_pri_alt_paths, 1);
	if (CHECK(a.id->route.path_rec)) {
		IS(a.id->route.path_rec->rec_type, SA_PATH_REC_TYPE_ROCE_V2);
		IS(be16_to_cpu(a.id->route.path_rec->pkey), 0xffff);
		CHECK(!memcmp(&a.id->route.path_rec->dgid, &mapped, sizeof(mapped)));
	}
	stop();

	/* A path that the consumer knows needs no question. */
	if (until_resolved()) {
		struct sa_path_rec path = {
			.rec_type = SA_PATH_REC_TYPE_ROCE_V2,
			.pkey = cpu_to_be16(0xffff),
			.mtu = IB_MTU_1024,
			.packet_life_time = 16,
			.hop_limit = 64,
		};

		memcpy(&path.sgid, &mapped, sizeof(mapped));
		memcpy(&path.dgid, &mapped, sizeof(mapped));
		IS(rdma_set_ib_path(a.id, &path), 0);
		is_in(&a, ROUTE_RESOLVED);
		IS(a.id->route.num_pri_alt_paths, 1);
		if (CHECK(a.id->route.path_rec)) {
			IS(a.id->route.path_rec->rec_type, SA_PATH_REC_TYPE_ROCE_V2);
			IS(a.id->route.path_rec->mtu, IB_MTU_1024);
			CHECK(!memcmp(&a.id->route.path_rec->sgid, &mapped, sizeof(mapped)));
		}
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
	}
	stop();
}

void listeners(void)
{
	struct side other;

	/* One at the address, one at all of them, and nobody's child. */
	if (!start() || !IS(create(&other, RDMA_PS_TCP, IB_QPT_RC), 0))
		return stop();
	is_in(&l, LISTENING);
	IS(rdma_bind_addr(other.id, at(0, port)), -EADDRNOTAVAIL);
	IS(rdma_bind_addr(other.id, at(address, port)), -EADDRINUSE);
	IS(rdma_bind_addr(other.id, at(0, port + 1)), 0);
	IS(listen(&other), 0);
	IS(listen(&other), -EINVAL);
	CHECK(!other.id->device);
	other.child = &b;
	if (IS(rdma_resolve_addr(a.id, NULL, at(address, port + 1), 1000), 0) &&
	    expect(&a, ADDR_RESOLVED) && IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED) &&
	    IS(connect(&a), 0) && expect(&b, CONNECT_REQUEST)) {
		CHECK(b.id->device == dev);
		CHECK(b.id->ps == RDMA_PS_TCP);
		IS(((struct sockaddr_in *)&b.id->route.addr.src_addr)->sin_addr.s_addr,
		   htonl(address));
		/* Without its listener it goes on. */
		end(&other);
		IS(accept_locked(&b), 0);
		expect(&a, CONNECT_RESPONSE);
	}
	end(&other);
	port++;
	stop();

	/* To none. */
	if (until_route()) {
		end(&l);
		IS(connect(&a), 0);
		expect_status(&a, REJECTED, IB_CM_REJ_INVALID_SERVICE_ID);
		is_in(&a, REJECTED);
	}
	stop();

	/* A listener that is bound to nothing has a port. */
	if (!IS(create(&l, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	IS(listen(&l), 0);
	CHECK(port_of(&l));
	CHECK(!l.id->device);
	end(&l);
}
