// SPDX-License-Identifier: GPL-2.0
/* Messages of the connection manager, as they are sent. */
#include "hostile.h"
#include "mad.h"

void put(uint8_t *to, uint64_t value, int bytes)
{
	while (bytes--) {
		to[bytes] = value;
		value >>= 8;
	}
}

uint64_t get(const uint8_t *from, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *from++;
	return value;
}

bool is_v4(const uint8_t *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

void gid_of(uint8_t *gid, const char *address)
{
	memset(gid, 0, 16);
	if (inet_pton(AF_INET6, address, gid) == 1)
		return;
	gid[10] = gid[11] = 0xff;
	REQUIRE(inet_pton(AF_INET, address, gid + 12) == 1);
}

void mad_init(uint8_t *mad, enum attribute attribute, uint32_t local, uint32_t remote)
{
	static uint64_t tid = 0x1234567800000000;

	memset(mad, 0, MAD_LEN);
	memcpy(mad, (const uint8_t[4]){ 1, 7, 2, 3 }, 4);
	put(mad + 8, tid++, 8);
	put(mad + 16, attribute, 2);
	put(mad + LOCAL_ID, local, 4);
	if (attribute != REQ)
		put(mad + REMOTE_ID, remote, 4);
}

void req_init(uint8_t *mad, const struct forged_req *req)
{
	uint8_t *body = mad + BODY;

	mad_init(mad, REQ, req->comm_id, 0);
	put(body + 8, (uint64_t)PS_TCP << 16 | req->port, 8);
	put(body + 16, req->guid, 8);
	put(body + 32, req->qpn, 3);
	body[35] = body[39] = 1;
	body[43] = 20 << 3;
	put(body + 44, 1, 3);
	body[47] = req->timeout << 3 | 7;
	put(body + 48, 0xffff, 2);
	body[50] = 3 << 4 | 7;
	body[51] = 15 << 4;
	memset(body + 52, 0xff, 4);
	memcpy(body + 56, req->src, 16);
	memcpy(body + 72, req->dst, 16);
	body[91] = 3;
	body[93] = 64;
	body[95] = 18 << 3;
	/* The header for IP services (annex A11). */
	body[141] = is_v4(req->dst) ? 0x40 : 0x60;
	put(body + 142, 0x1234, 2);
	if (is_v4(req->dst)) {
		memcpy(body + 156, req->src + 12, 4);
		memcpy(body + 172, req->dst + 12, 4);
	} else {
		memcpy(body + 144, req->src, 16);
		memcpy(body + 160, req->dst, 16);
	}
}
