/* SPDX-License-Identifier: GPL-2.0 */
/* The function of the module to which the stand-ins refer, in rust/helpers/stand_in.c */
#ifndef RUST_RDMA_CM_IN_PLACE_H
#define RUST_RDMA_CM_IN_PLACE_H

void rust_rdma_cm_in_place(void);

#endif /* RUST_RDMA_CM_IN_PLACE_H */
