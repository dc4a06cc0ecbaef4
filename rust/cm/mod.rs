// SPDX-License-Identifier: GPL-2.0

//! The InfiniBand CM: messages, timers, and the end of an endpoint.
//!
//! [`cmproto::cm`], [`cmproto::sidr`] and [`cmproto::node`] make the decisions, and this layer
//! executes them.
//!
//! The layers above call the verbs of `<rdma/ib_cm.h>`, which are methods of an
//! [`Endpoint`](crate::endpoint::Endpoint): those of a connection in `connect` and `verbs`, those
//! of service id resolution in `datagram`. Requests are sent along a [`Route`](route::Route).

mod alternate;
pub(crate) mod child;
mod connect;
pub(crate) mod consumer_path;
mod datagram;
mod destroy;
mod execute;
mod expiry;
mod failure;
mod incoming_mad;
mod keepalive;
pub(crate) mod link;
mod matched_listener;
mod mra;
mod offer;
mod pending_request;
mod qp_attr;
pub(crate) mod receive;
mod reply;
mod reply_path;
mod request;
mod resolve;
mod retry_policy;
pub(crate) mod route;
mod sidr;
mod sidr_request;
mod trace;
mod verbs;
