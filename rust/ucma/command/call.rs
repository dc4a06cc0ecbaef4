// SPDX-License-Identifier: GPL-2.0

//! One call of a command: its request, and the address for its response.
//!
//! User memory is read and written with no lock held, and never beyond the lengths that the command
//! header gives. C copies the whole structure of a request, however short the caller said it was;
//! here, the part of the structure beyond that length is zero.

use crate::{
    kext::{
        chardev::OpenFile,
        error::ResultExt,
        uaccess::{self, UserBytes},
        users::Charge,
    },
    ucma::{channel::Channel, context::Context},
};
use cmproto::{
    errno::Errno,
    ucma::{account::Resource, frame::Frame},
    ucma_abi::{FromBytes, Immutable, IntoBytes},
};
use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
};

/// A request that names a context.
pub(super) trait Request: FromBytes {
    /// Returns the number of the context.
    fn id(&self) -> u32;

    /// Checks the request itself, before the context is looked up.
    fn check(&self) -> Result<(), Errno> {
        Ok(())
    }
}

/// Implements [`Request`] for a structure with the field `id`, and perhaps with a check.
macro_rules! request {
    ($name:ident $(: |$request:ident| $check:expr)?) => {
        impl $crate::ucma::command::call::Request for cmproto::ucma_abi::$name {
            fn id(&self) -> u32 {
                self.id
            }

            $(fn check(&self) -> Result<(), cmproto::errno::Errno> {
                let $request = self;
                $check
            })?
        }
    };
}
pub(super) use request;

/// A call of a command.
pub(super) struct Call<'a> {
    channel: ArcBorrow<'a, Channel>,
    file: &'a OpenFile<'a, Channel>,
    frame: Frame,
    /// The part of the write that follows the header.
    user: UserBytes,
}

impl<'a> Call<'a> {
    /// Creates the call for a write to `channel`.
    pub(super) fn new(
        channel: ArcBorrow<'a, Channel>,
        file: &'a OpenFile<'a, Channel>,
        frame: Frame,
        user: UserBytes,
    ) -> Self {
        Call {
            channel,
            file,
            frame,
            user,
        }
    }

    /// Returns the channel that is written to.
    pub(super) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Returns a new reference to the channel that is written to.
    pub(super) fn channel_arc(&self) -> Arc<Channel> {
        self.channel.into()
    }

    /// Returns the channel behind another file descriptor of the caller.
    ///
    /// # Errors
    ///
    /// - `ENOENT` if there is no such descriptor;
    /// - `EINVAL` if it is not a file of this device.
    pub(super) fn sibling(&self, fd: u32) -> Result<Arc<Channel>> {
        self.file
            .sibling(fd)
            .map_err(|error| if error == EBADF { ENOENT } else { error })
    }

    /// Returns whether the file is non-blocking (`O_NONBLOCK`) now.
    pub(super) fn is_nonblocking(&self) -> bool {
        self.file.is_nonblocking()
    }

    /// Charges one of `resource`, which is for `context`, to the user of the file. Fails like
    /// [`Charge::new`], of which administrators are told then.
    pub(super) fn charge(&self, context: &Context, resource: Resource) -> Result<Charge> {
        let channel = self.channel();
        Charge::new(channel.user.as_ref(), resource)
            .inspect_err(|_| channel.tell_limit(&context.endpoint().net, resource))
    }

    /// Returns the length of the request, in bytes.
    pub(super) fn request_len(&self) -> usize {
        self.frame.request_len
    }

    /// Returns the size of the caller's buffer for the response, in bytes.
    pub(super) fn response_len(&self) -> usize {
        self.frame.response_len
    }

    /// Reads the request into `slot`. Bytes that the caller did not supply are zero.
    fn request<'r, R: FromBytes>(&self, slot: &'r mut MaybeUninit<R>) -> Result<&'r R> {
        self.user.read_prefix(self.frame.request_len, slot)
    }

    /// Writes as much of `response` to the user's `address` as the caller's buffer takes.
    pub(super) fn respond<T>(&self, address: u64, response: &T) -> Result
    where
        T: IntoBytes + Immutable + ?Sized,
    {
        uaccess::write_prefix(address, self.response_len(), response.as_bytes())
    }

    /// Writes `start` as [`respond`](Self::respond) does, followed by zeros up to the size of a
    /// `T`.
    pub(super) fn respond_padded<T>(
        &self,
        address: u64,
        start: &(impl IntoBytes + Immutable),
    ) -> Result {
        self.respond(address, start)?;
        let done = size_of_val(start);
        let zeros = self.response_len().min(size_of::<T>()).saturating_sub(done);
        uaccess::write_zeros(address.wrapping_add(u64::try_from(done)?), zeros)
    }

    // Forms of commands
    // ------------------------------------------------------------------------------------------

    /// Runs a command that does not act on an existing context.
    pub(super) fn on_channel<R: FromBytes>(&self, run: impl FnOnce(&Self, &R) -> Result) -> Result {
        let mut slot = MaybeUninit::uninit();
        run(self, self.request(&mut slot)?)
    }

    /// Runs a command on the context that its request names.
    pub(super) fn on_context<R: Request>(
        &self,
        run: impl FnOnce(&Self, &Context, &R) -> Result,
    ) -> Result {
        let mut slot = MaybeUninit::uninit();
        let request: &R = self.request(&mut slot)?;
        request.check().kernel()?;
        let context = self.channel().context(request.id())?;
        run(self, &context, request)
    }

    /// Runs a command on the context that its request names. Fails with `EINVAL` unless the context
    /// is bound to a device.
    pub(super) fn on_device<R: Request>(
        &self,
        run: impl FnOnce(&Self, &Context, &R) -> Result,
    ) -> Result {
        self.on_context(|call, context, request| {
            if !context.endpoint().has_device() {
                return Err(EINVAL);
            }
            run(call, context, request)
        })
    }
}
