/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that bindgen reads for the test modules, and functions that Rust cannot call: inline
 * functions, and parameters of a module that are strings.
 */
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>

const char *rust_test_device(void);
const char *rust_test_other_device(void);

bool rust_test_is_ib(struct ib_device *device, u32 port_num);
int rust_test_post_recv(struct ib_qp *qp, const struct ib_recv_wr *request);
int rust_test_post_send(struct ib_qp *qp, const struct ib_send_wr *request);
u64 rust_test_dma_map(struct ib_device *device, void *memory, size_t size);
void rust_test_dma_sync(struct ib_device *device, u64 map, size_t size);
void rust_test_dma_unmap(struct ib_device *device, u64 map, size_t size);

/* For ibcm only: bindgen puts bit fields that cross a word elsewhere than the compiler does. */
struct rust_test_req_bits {
	u8 local_cm_response_timeout;
	u8 remote_cm_response_timeout;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 srq;
};

struct rust_test_req_bits rust_test_req_bits(const struct ib_cm_req_event_param *req);
unsigned long long rust_test_service(void);
bool rust_test_bounded(void);
bool rust_test_migrates(void);
bool rust_test_proposes(void);

/* For cmid only. */
const char *rust_test_ipv4(void);
const char *rust_test_peer(void);
unsigned int rust_test_removal(void);
int rust_test_churn_start(const u8 *own, const u8 *other, const u8 *mac);
bool rust_test_churn_wait(void);
void rust_test_churn_stop(void);
unsigned short rust_test_resident(void);
bool rust_test_resolves(void);
unsigned int rust_test_node_type(void);
bool rust_test_lock(void);
bool rust_test_own(void);
bool rust_test_shares(void);
bool rust_test_claims_end(void);
void rust_test_rtnl_lock(void);
bool rust_test_is_locked(void);
void rust_test_rtnl_unlock(void);
bool rust_test_stuck_only(void);
void rust_test_stick_accept(struct ib_device *device, u32 qpn);
void rust_test_wait_stuck(void);
bool rust_test_is_stuck(void);
void rust_test_free_accept(struct ib_device *device);
bool rust_test_is_iwarp(struct ib_device *device, u32 port_num);
