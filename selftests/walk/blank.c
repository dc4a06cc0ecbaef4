// SPDX-License-Identifier: GPL-2.0
/* The parts of an answer or event that differ from run to run, and so are not compared. */
#include "walk.h"

#define ATTR_PORT 0x20	/* in the mask of INIT_QP_ATTR */

/* Blank, if they are not 0, the bytes whose value is chosen in each run. */
static void blank_bytes(uint8_t *answer, const bool *written, size_t at, size_t len)
{
	bool any = false;

	for (size_t i = at; i < at + len; i++)
		any |= written[i] && answer[i];
	if (any)
		memset(answer + at, 0xcc, len);
}

/* The number of a new id or membership. */
void blank_number(uint8_t *answer, const bool *written)
{
	blank_bytes(answer, written, 0, 4);
}

/*
 * The scope of an IPv6 address is the index of an interface: another one whenever the interface is made anew. A hash of
 * its name takes its place.
 */
static void name_scope(uint8_t *answer, const bool *written, size_t at)
{
	char name[IF_NAMESIZE];
	uint32_t scope, hash = 2166136261;

	memcpy(&scope, answer + at, sizeof(scope));
	if (!written[at] || !scope || !if_indextoname(scope, name))
		return;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619;
	memcpy(answer + at, &hash, sizeof(hash));
}

static void blank_port(uint8_t *answer, const bool *written, size_t at)
{
	uint16_t family;

	memcpy(&family, answer + at, sizeof(family));
	if (family == AF_INET6)
		name_scope(answer, written, at + offsetof(struct sockaddr_in6, sin6_scope_id));
	/* In a service id the port is last. */
	blank_bytes(answer, written, at + (family == AF_IB ? 30 : 2), 2);
}

/*
 * The index of the device whose GUID the answer begins with, if it is that: another one whenever the device
 * is made anew.
 */
static void blank_device(uint8_t *answer, const bool *written, size_t at)
{
	uint64_t guid;
	uint32_t index;

	for (size_t i = 0; i < sizeof(index); i++)
		if (!written[at + i])
			return;
	memcpy(&guid, answer, sizeof(guid));
	memcpy(&index, answer + at, sizeof(index));
	if (guid && device_index_of_guid(guid) == index)
		memset(answer + at, 0xcc, sizeof(index));
}

void blank_route(uint8_t *answer, const bool *written)
{
	blank_device(answer, written, 200);
	blank_port(answer, written, 136);
	blank_port(answer, written, 164);
	/* The flow label depends on the ports. */
	blank_bytes(answer, written, 48, 4);
}

void blank_query(uint8_t *answer, const bool *written)
{
	if (written[279] || written[271]) {
		blank_port(answer, written, 16);
		blank_port(answer, written, 144);
		blank_device(answer, written, 272);
		return;
	}
	/* Paths: the port is in the service id. */
	blank_bytes(answer, written, 8 + 8 + 6, 2);
#ifndef OVER_IB
	/*
	 * The flow label depends on the ports. The LIDs before it mean nothing on RoCE: C shows
	 * there bytes of the MAC address that it keeps in the same place.
	 */
	if (written[0] && answer[0])
		memset(answer + 56, 0xcc, 7);
#endif
}

void blank_attr(uint8_t *answer, const bool *written)
{
	blank_bytes(answer, written, offsetof(struct ib_uverbs_qp_attr, rq_psn), 4);
	blank_bytes(answer, written, offsetof(struct ib_uverbs_qp_attr, sq_psn), 4);
	blank_bytes(answer, written, offsetof(struct ib_uverbs_qp_attr, dest_qp_num), 4);
	blank_bytes(answer, written, offsetof(struct ib_uverbs_qp_attr, ah_attr.grh.flow_label), 4);
	/* If the mask does not name the port, its number means nothing. */
	if (!(answer[0] & ATTR_PORT))
		answer[offsetof(struct ib_uverbs_qp_attr, port_num)] = 0;
}

#define AT_EVENT(member) offsetof(struct rdma_ucm_event_resp, member)

void blank_event(uint8_t *answer, const bool *written)
{
	/* The number of the id: a line says of an event whose it is. */
	blank_bytes(answer, written, AT_EVENT(id), 4);
	blank_bytes(answer, written, AT_EVENT(param.conn.qp_num), 4);
	/* The event is one of a datagram service. In the same place an RTU has private data, but here none. */
	if (answer[AT_EVENT(event)] == EV_ESTABLISHED)
		blank_bytes(answer, written, AT_EVENT(param.ud.ah_attr.grh.flow_label), 4);
	/* The subnet administrator chooses the LID of a group, and its GID if it is asked to (ff1x:a01b::). */
	if (answer[AT_EVENT(event)] == EV_MULTICAST_JOIN) {
		size_t gid = AT_EVENT(param.ud.ah_attr.grh.dgid);

		blank_bytes(answer, written, AT_EVENT(param.ud.ah_attr.dlid), 2);
		if (answer[gid + 2] == 0xa0 && answer[gid + 3] == 0x1b)
			blank_bytes(answer, written, gid, 16);
	}
}
