// SPDX-License-Identifier: GPL-2.0

//! The commands that a program writes to a file of the device.

mod address;
mod call;
mod connect;
mod context;
mod event;
mod multicast;
mod option;
mod query;
mod table;

pub(super) use self::table::dispatch;
