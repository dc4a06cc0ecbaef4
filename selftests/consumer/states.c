// SPDX-License-Identifier: GPL-2.0
/* The states, and what is refused in each. */
#include "ibcm.h"

/* What may be done in which states, but for what was done to get there. */
#define S(state) (1 << IB_CM_##state)
static const struct {
	const char *name;
	int (*act)(struct side *side);
	u32 states;
} acts[] = {
	{ "req", send_req, S(IDLE) },
	{ "rep", send_rep, S(REQ_RCVD) | S(MRA_REQ_SENT) },
	{ "rtu", send_rtu, S(REP_RCVD) | S(MRA_REP_SENT) },
	{ "dreq", send_dreq, S(ESTABLISHED) },
	{ "drep", send_drep, S(DREQ_RCVD) },
	{ "rej", send_rej, S(REQ_SENT) | S(MRA_REQ_RCVD) | S(REQ_RCVD) | S(MRA_REQ_SENT) |
			   S(REP_RCVD) | S(MRA_REP_SENT) | S(REP_SENT) | S(MRA_REP_RCVD) },
	{ "mra", prepare_mra, S(REQ_RCVD) | S(REP_RCVD) },
	{ "established", established, S(REP_SENT) | S(MRA_REP_RCVD) },
	{ "migrated", migrated, S(ESTABLISHED) },
	{ "listen", listen, S(IDLE) },
	{ "sidr_rep", send_sidr_rep, S(SIDR_REQ_RCVD) },
	{ "init", init_attr, S(REQ_SENT) | S(REQ_RCVD) | S(MRA_REQ_SENT) | S(MRA_REQ_RCVD) |
			     S(REP_SENT) | S(REP_RCVD) | S(MRA_REP_SENT) | S(MRA_REP_RCVD) |
			     S(ESTABLISHED) },
	{ "rtr", rtr_attr, S(REQ_RCVD) | S(MRA_REQ_SENT) | S(REP_SENT) | S(REP_RCVD) |
			   S(MRA_REP_SENT) | S(MRA_REP_RCVD) | S(ESTABLISHED) },
};

/* A side is in a state, and refuses what is not for it. */
void is_in_at(struct side *side, enum ib_cm_state state, int line)
{
	int i, ret;

	if (side->id->state != state) {
		pr_err("ibcm: line %d: state %d, not %d\n", line, side->id->state, state);
		good = false;
		return;
	}
	for (i = 0; i < ARRAY_SIZE(acts); i++) {
		if (acts[i].states & BIT(state))
			continue;
		ret = acts[i].act(side);
		if (ret != (acts[i].act == established && state == IB_CM_ESTABLISHED ?
			    -EISCONN : -EINVAL) || side->id->state != state) {
			pr_err("ibcm: line %d: %s in state %d is %d, then state %d\n", line,
			       acts[i].name, state, ret, side->id->state);
			good = false;
		}
	}
}
