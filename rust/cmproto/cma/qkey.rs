// SPDX-License-Identifier: GPL-2.0

//! The Q_Key of a datagram endpoint.

use crate::{errno::Errno, service_id::PortSpace};

/// The Q_Key of a datagram endpoint; 0 if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qkey(u32);

impl Qkey {
    /// The default Q_Key of datagram services (`RDMA_UDP_QKEY`).
    pub const DEFAULT: u32 = 0x0123_4567;

    /// Creates a Q_Key that is not known yet.
    pub const fn unknown() -> Self {
        Self(0)
    }

    /// Returns the Q_Key; 0 if it is not known yet.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Sets the Q_Key to the default of the port space, whatever it was before.
    ///
    /// # Errors
    ///
    /// [`Errno::ENODEV`] for [`PortSpace::Ipoib`], whose default is the Q_Key of the interface's
    /// broadcast group ([`Qkey::take_group`]), which exists on InfiniBand only.
    pub fn take_default(&mut self, ps: PortSpace) -> Result<(), Errno> {
        match ps {
            PortSpace::Udp | PortSpace::Ib => self.0 = Self::DEFAULT,
            PortSpace::Ipoib => return Err(Errno::ENODEV),
            PortSpace::Tcp => {}
        }
        Ok(())
    }

    /// Sets the Q_Key to that of the interface's broadcast group, whatever it was before.
    pub fn take_group(&mut self, qkey: u32) {
        self.0 = qkey;
    }

    /// Sets the Q_Key to the one that a peer or a user gives.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if `qkey` is 0, or differs from the Q_Key that is known already. A Q_Key
    /// of 0, as from a broadcast group, does not count as known.
    pub fn take(&mut self, qkey: u32) -> Result<(), Errno> {
        if qkey == 0 || (self.value() != 0 && self.value() != qkey) {
            return Err(Errno::EINVAL);
        }
        self.0 = qkey;
        Ok(())
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cma_qkey)
)]
mod tests {
    use super::*;

    #[test]
    fn the_first_one_stays() {
        let mut qkey = Qkey::unknown();
        assert_eq!(qkey.value(), 0);
        assert_eq!(qkey.take(0), Err(Errno::EINVAL));
        assert_eq!(qkey, Qkey::unknown());
        assert_eq!(qkey.take(7), Ok(()));
        assert_eq!(qkey.take(7), Ok(()));
        assert_eq!(qkey.take(8), Err(Errno::EINVAL));
        assert_eq!(qkey.take(0), Err(Errno::EINVAL));
        assert_eq!(qkey.value(), 7);
    }

    #[test]
    fn the_default_replaces_any() {
        for ps in [PortSpace::Udp, PortSpace::Ib] {
            let mut qkey = Qkey::unknown();
            assert_eq!(qkey.take(7), Ok(()));
            assert_eq!(qkey.take_default(ps), Ok(()));
            assert_eq!(qkey.value(), Qkey::DEFAULT);
        }
        assert_eq!(Qkey::DEFAULT, 0x0123_4567);
        let mut qkey = Qkey::unknown();
        assert_eq!(qkey.take_default(PortSpace::Ipoib), Err(Errno::ENODEV));
        assert_eq!(qkey.take_default(PortSpace::Tcp), Ok(()));
        assert_eq!(qkey, Qkey::unknown());
    }

    #[test]
    fn that_of_a_group_replaces_any() {
        let mut qkey = Qkey::unknown();
        assert_eq!(qkey.take(7), Ok(()));
        qkey.take_group(9);
        assert_eq!(qkey.value(), 9);
        assert_eq!(qkey.take(7), Err(Errno::EINVAL));
        // A group with the Q_Key 0 has none.
        qkey.take_group(0);
        assert_eq!(qkey.value(), 0);
        assert_eq!(qkey.take(5), Ok(()));
        assert_eq!(qkey.value(), 5);
    }
}
