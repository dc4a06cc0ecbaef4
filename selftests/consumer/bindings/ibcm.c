// SPDX-License-Identifier: GPL-2.0
/* The helpers of ibcm. */
#include "device.h"

static ulong service;
module_param(service, ulong, 0);
MODULE_PARM_DESC(service, "service id of a listener that is there instead of the tests");

unsigned long long rust_test_service(void)
{
	return service;
}

static bool bounded;
module_param(bounded, bool, 0);
MODULE_PARM_DESC(bounded, "the only test is that of a request whose time the port bounds");

bool rust_test_bounded(void)
{
	return bounded;
}

static bool migrates;
module_param(migrates, bool, 0);
MODULE_PARM_DESC(migrates, "the only tests are those of alternate paths that C does not pass");

bool rust_test_migrates(void)
{
	return migrates;
}

static bool proposes;
module_param(proposes, bool, 0);
MODULE_PARM_DESC(proposes, "the only tests are those of alternate paths of established connections");

bool rust_test_proposes(void)
{
	return proposes;
}

struct rust_test_req_bits rust_test_req_bits(const struct ib_cm_req_event_param *req)
{
	return (struct rust_test_req_bits) {
		.local_cm_response_timeout = req->local_cm_response_timeout,
		.remote_cm_response_timeout = req->remote_cm_response_timeout,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		.srq = req->srq,
	};
}
