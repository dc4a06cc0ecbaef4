// SPDX-License-Identifier: GPL-2.0

//! Each rule is found broken where it is broken, and nowhere else.

mod datagram;
mod file;
mod infiniband;
mod message;
mod repeats;
mod steps;
