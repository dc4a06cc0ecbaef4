// SPDX-License-Identifier: GPL-2.0

//! The command that sets the options of a context.

use super::call::{request, Call};
use crate::{
    kext::{error::ResultExt, uaccess},
    ucma::{context::Context, entries::ExpectedEvents},
};
use cmproto::{
    errno::Errno,
    ucma::option::{IdOption, MAX_VALUE_LEN},
    ucma_abi::{self as abi, FromZeros, IntoBytes, OptionName, PathRecData, SaPathRecord},
};
use core::mem::size_of;
use kernel::{
    prelude::*,
    uaccess::{UserPtr, UserSlice, UserSliceReader},
};

request!(SetOption: |request| {
    if request.optlen > MAX_VALUE_LEN {
        return Err(Errno::EINVAL);
    }
    Ok(())
});

/// `SET_OPTION`: sets an option of a context.
///
/// # Errors
///
/// - `EINVAL` if the value is longer than 4 MiB, or does not have the length of the option;
/// - `EFAULT` if any byte of the value cannot be read, even one that the option does not need;
/// - `ENOSYS` if there is no such option;
/// - the errors of the option.
pub(super) fn set(call: &Call<'_>, context: &Context, request: &abi::SetOption) -> Result {
    let address = usize::try_from(request.optval).map_err(|_| EFAULT)?;
    let len = usize::try_from(request.optlen).map_err(|_| EINVAL)?;
    let mut value = UserSlice::new(UserPtr::from_addr(address), len).reader();
    if OptionName::new(request.level, request.optname) == Ok(OptionName::IbPath) {
        return set_path(call, context, value);
    }
    let start = uaccess::read_prefix(&mut value, len)?;
    skip(&mut value)?;
    let endpoint = context.endpoint();
    match IdOption::new(request.level, request.optname, start, request.optlen).kernel()? {
        IdOption::Tos(tos) => {
            endpoint.set_tos(tos);
            Ok(())
        }
        IdOption::ReuseAddr(on) => endpoint.set_reuseaddr(on),
        IdOption::AfOnly(on) => endpoint.set_afonly(on),
        IdOption::AckTimeout(timeout) => endpoint.set_ack_timeout(timeout),
        IdOption::Tuning(tunable, value) => endpoint.tune(tunable, value),
    }
}

/// Sets a path that the program has found by itself: the first one in `value` that is primary and
/// bidirectional. If there is none, asks the peer of a connection over InfiniBand to use the first
/// one that is alternate and bidirectional as the alternate path.
///
/// # Errors
///
/// - `EINVAL` if there is no such path, if the value ends in the middle of one, or if the context
///   has no device;
/// - `ENOMEM` if there is no memory;
/// - the errors of [`Endpoint::set_path`](crate::endpoint::Endpoint::set_path) and of
///   [`Endpoint::load_alternate`](crate::endpoint::Endpoint::load_alternate).
fn set_path(call: &Call<'_>, context: &Context, mut value: UserSliceReader) -> Result {
    let (mut primary, mut alternate) = (None, None);
    while value.len() >= size_of::<PathRecData>() {
        let mut path = PathRecData::new_zeroed();
        value.read_slice(path.as_mut_bytes())?;
        let found = match path.flags {
            PathRecData::BIDIRECTIONAL_PRIMARY => &mut primary,
            PathRecData::BIDIRECTIONAL_ALTERNATE => &mut alternate,
            _ => continue,
        };
        found.get_or_insert(SaPathRecord::unpack(&path.path_rec));
    }
    let is_whole = value.is_empty();
    skip(&mut value)?;
    let endpoint = context.endpoint();
    if !is_whole || !endpoint.has_device() {
        return Err(EINVAL);
    }
    match (primary, alternate) {
        (Some(record), _) => {
            call.channel()
                .reserve_events(context, ExpectedEvents::RESOLVE)?;
            endpoint.set_path(&endpoint.path_of_program(&record), true)
        }
        (None, Some(record)) => endpoint.load_alternate(&endpoint.path_of_program(&record)),
        (None, None) => Err(EINVAL),
    }
}

/// Reads the rest of a value, to find out whether it can be read.
///
/// C copies the whole value, so that a fault in any part of it is `EFAULT`. Nothing is allocated
/// here for the part that is not used.
fn skip(value: &mut UserSliceReader) -> Result {
    let mut chunk = [0; 256];
    while !value.is_empty() {
        let len = value.len().min(chunk.len());
        value.read_slice(chunk.get_mut(..len).ok_or(EFAULT)?)?;
    }
    Ok(())
}
