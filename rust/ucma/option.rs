// SPDX-License-Identifier: GPL-2.0

//! The command that sets options.

use super::{
    call::{Call, Request},
    context::Context,
};
use crate::kext::{error::ResultExt, uaccess};
use cmproto::{
    errno::Errno,
    ucma::option::{IdOption, MAX_VALUE_LEN, VALUE_LEN},
    ucma_abi as abi,
};
use kernel::{
    prelude::*,
    uaccess::{UserPtr, UserSlice, UserSliceReader},
};

impl Request for abi::SetOption {
    fn id(&self) -> u32 {
        self.id
    }

    fn check(&self) -> Result<(), Errno> {
        if self.optlen > MAX_VALUE_LEN {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }
}

/// `SET_OPTION`: sets an option of a context.
///
/// # Errors
///
/// - `EINVAL` if the value is longer than 4 MiB or of the wrong length for the option;
/// - `EFAULT` if any byte of it cannot be read, whatever the option needs;
/// - `ENOSYS` if there is no such option;
/// - those of the option.
pub(super) fn set(_: &Call<'_>, context: &Context, request: &abi::SetOption) -> Result {
    let value = read_value(request.optval, request.optlen)?;
    let endpoint = context.endpoint();
    match IdOption::new(request.level, request.optname, value, request.optlen).kernel()? {
        IdOption::Tos(tos) => {
            endpoint.set_tos(tos);
            Ok(())
        }
        IdOption::ReuseAddr(on) => endpoint.set_reuseaddr(on),
        IdOption::AfOnly(on) => endpoint.set_afonly(on),
        IdOption::AckTimeout(timeout) => endpoint.set_ack_timeout(timeout),
    }
}

/// Reads a value and returns its beginning, padded with zeros.
///
/// Nothing is allocated for the rest, but it must be readable, as for C, which copies it.
fn read_value(address: u64, len: u32) -> Result<[u8; VALUE_LEN]> {
    let address = usize::try_from(address).map_err(|_| EFAULT)?;
    let len = usize::try_from(len).map_err(|_| EINVAL)?;
    let mut reader = UserSlice::new(UserPtr::from_addr(address), len).reader();
    let value = uaccess::read_prefix(&mut reader, len)?;
    skip(&mut reader)?;
    Ok(value)
}

/// Reads the rest of `reader` for the faults that it has.
fn skip(reader: &mut UserSliceReader) -> Result {
    let mut chunk = [0; 256];
    while !reader.is_empty() {
        let len = reader.len().min(chunk.len());
        reader.read_slice(chunk.get_mut(..len).ok_or(EFAULT)?)?;
    }
    Ok(())
}
