// SPDX-License-Identifier: GPL-2.0

//! Intrusive containers: an entry needs no memory of its own.
//!
//! An object that is to be in a container has a [`Link`] among its fields, and is owned by counted
//! references. To enter it allocates nothing and so cannot fail for want of memory. A container
//! owns a reference to each of its objects, so that no object goes while it is in one.
//!
//! Everything that is public can be called from safe code:
//!
//! - A link is in at most one container. The container that an object is entered into
//!   claims the link, and returns the reference if another container has it.
//! - A link says in which container it is, so that an object is removed only from there.
//! - The links in a container are read with a shared reference to the container, and written with
//!   an exclusive one. A user protects the container with a lock, and the objects need none for
//!   it.
//!
//! - An object may have a value ([`TreeCell`]) that belongs to the tree which it is in: a user that
//!   may write to the tree may write to the value.
//!
//! The claim is the only part that several tasks may run at a time without a lock. Its tests are
//! run under loom, too, and all tests under Miri, with both of its models of aliasing.
//!
//! The crate does not depend on the kernel. The same files are compiled into the module, and by
//! cargo on a host.

// The kernel's build names `no_std` on the command line.
#![cfg_attr(not(any(test, CONFIG_RUST)), no_std)]
#![warn(missing_docs)]
#![deny(unsafe_op_in_unsafe_fn)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::as_underscore,
        clippy::cast_lossless,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unwrap_used
    )
)]

mod avl;
mod cell;
mod count;
mod counted;
mod link;
mod mark;
#[cfg(all(test, not(loom)))]
mod tests;
mod tree;

pub use self::{
    cell::{HasCell, TreeCell},
    count::Count,
    counted::{Borrowed, Counted},
    link::{HasLink, Link},
    tree::Tree,
};
