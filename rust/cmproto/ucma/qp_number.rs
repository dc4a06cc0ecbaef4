// SPDX-License-Identifier: GPL-2.0

//! The queue pairs that a program may name when it connects.
//!
//! A REQ or REP with the number of a queue pair makes the peer believe that an older connection of
//! that queue pair has been lost. So a program that names the queue pair of another would end that
//! one's connection.

use crate::{errno::Errno, qp::QpType};

/// The maker of a queue pair that a program names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// The process of the program.
    Caller,
    /// A part of the kernel.
    Kernel,
    /// Another process.
    Process {
        /// The effective user of the process, in the initial user namespace.
        user: u32,
        /// Set if the queue pair is an XRC target that any process with the XRC domain may use.
        shares: bool,
    },
}

/// The relation of a program to the queue pair that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpAccess {
    /// There is no queue pair with the number.
    NoQp,
    /// The program owns the queue pair: claims of others to the number give way.
    Owner,
    /// The program shares the queue pair with others.
    Shared,
}

/// Returns the relation of a program to the queue pair that it names, of which `maker` is the
/// maker, if there is one, for an endpoint of the type `qp_type`. `user` returns the effective user
/// of the program.
///
/// The opener of the file is not asked for: a write by anybody else has failed before.
///
/// # Errors
///
/// `EPERM` if the queue pair is the kernel's, or was made by another process of another user.
#[inline]
pub fn qp_access(
    maker: Option<Maker>,
    user: impl FnOnce() -> u32,
    qp_type: QpType,
) -> Result<QpAccess, Errno> {
    match maker {
        None => Ok(QpAccess::NoQp),
        Some(Maker::Caller) => Ok(QpAccess::Owner),
        Some(Maker::Process { user: maker, .. }) if maker == user() => Ok(QpAccess::Owner),
        Some(Maker::Process { shares: true, .. }) if qp_type == QpType::XRC_TGT => {
            Ok(QpAccess::Shared)
        }
        Some(Maker::Kernel | Maker::Process { .. }) => Err(Errno::EPERM),
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ucma_qp_number)
)]
mod tests {
    use super::*;

    const USER: u32 = 1000;
    const TYPES: [QpType; 5] = [
        QpType::RC,
        QpType::UC,
        QpType::UD,
        QpType::XRC_INI,
        QpType::XRC_TGT,
    ];

    fn asked(maker: Maker, user: u32, qp_type: QpType) -> Result<QpAccess, Errno> {
        qp_access(Some(maker), || user, qp_type)
    }

    #[test]
    fn numbers_of_no_queue_pair_are_free() {
        for qp_type in TYPES {
            assert_eq!(qp_access(None, || USER, qp_type), Ok(QpAccess::NoQp));
        }
    }

    #[test]
    fn the_maker_may() {
        for qp_type in TYPES {
            // The process may have changed its user since.
            for user in [0, USER] {
                assert_eq!(asked(Maker::Caller, user, qp_type), Ok(QpAccess::Owner));
            }
            for shares in [false, true] {
                let other = Maker::Process { user: USER, shares };
                assert_eq!(asked(other, USER, qp_type), Ok(QpAccess::Owner));
            }
        }
    }

    #[test]
    fn another_user_may_not() {
        for qp_type in TYPES {
            for (maker, user) in [(0, USER), (USER, 0), (USER, USER + 1), (u32::MAX, USER)] {
                let other = Maker::Process {
                    user: maker,
                    shares: false,
                };
                assert_eq!(
                    (maker, user, asked(other, user, qp_type)),
                    (maker, user, Err(Errno::EPERM))
                );
            }
        }
    }

    #[test]
    fn nobody_may_use_the_kernels() {
        for qp_type in TYPES {
            for user in [0, USER] {
                assert_eq!(asked(Maker::Kernel, user, qp_type), Err(Errno::EPERM));
            }
        }
    }

    #[test]
    fn a_target_is_shared_by_targets() {
        let shared = Maker::Process {
            user: 0,
            shares: true,
        };
        for qp_type in TYPES {
            let may = match qp_type {
                QpType::XRC_TGT => Ok(QpAccess::Shared),
                _ => Err(Errno::EPERM),
            };
            assert_eq!((qp_type, asked(shared, USER, qp_type)), (qp_type, may));
        }
    }
}
