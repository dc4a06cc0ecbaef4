// SPDX-License-Identifier: GPL-2.0

//! The rules of the kernel's InfiniBand CM API (`<rdma/ib_cm.h>`), as far as they go beyond the
//! state machines of [`crate::cm`] and [`crate::sidr`].

mod event;
mod notify;
mod param;
mod service;

pub use self::{
    event::EventType,
    notify::{notify, Notice, COMM_EST, PATH_MIG},
    param::payload,
    service::{requested_service_id, RequestedServiceId, ASSIGN},
};
