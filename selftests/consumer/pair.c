// SPDX-License-Identifier: GPL-2.0
/* Two ends, and how far they have come. */
#include "ibcm.h"

u64 service = 0x10000000cafe0000ULL;
struct side a, b, l;

/* A listener, and an end that may speak to it. */
bool start(void)
{
	init_side(&b);
	service++;
	if (!IS(create(&l), 0))
		return false;
	l.child = &b;
	if (!IS(ib_cm_listen(l.id, cpu_to_be64(service)), 0) || !IS(create(&a), 0)) {
		end(&l);
		return false;
	}
	return true;
}

void stop(void)
{
	end(&l);
	end(&a);
	end(&b);
}

/* Up to a REP that nobody has answered. */
bool until_rep(void)
{
	return start() && IS(send_req(&a), 0) && expect(&b, IB_CM_REQ_RECEIVED) &&
	       IS(send_rep(&b), 0) && expect(&a, IB_CM_REP_RECEIVED);
}

bool until_established(void)
{
	return until_rep() && IS(send_rtu(&a), 0) && expect(&b, IB_CM_RTU_RECEIVED);
}
