// SPDX-License-Identifier: GPL-2.0

//! The RDMA CM: the operations of an endpoint that deals in addresses, one file for each.

mod address;
mod bind;
mod connect;
mod device;
mod infiniband;
pub(crate) mod iwarp;
mod listen;
pub(crate) mod multicast;
pub(crate) mod network;
mod option;
mod qp_attr;
mod qp_number;
mod route;
pub(crate) mod service;
mod settings;
mod sidr;
pub(crate) mod view;
mod wildcard;
