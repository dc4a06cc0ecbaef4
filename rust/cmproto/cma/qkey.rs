// SPDX-License-Identifier: GPL-2.0

//! The Q_Key of a datagram endpoint.

use crate::{errno::Errno, service_id::PortSpace};

/// The Q_Key of a datagram endpoint, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qkey(Option<u32>);

impl Qkey {
    /// The Q_Key of services that name no other (`RDMA_UDP_QKEY`).
    pub const DEFAULT: u32 = 0x0123_4567;

    /// A Q_Key that is not known yet.
    pub const fn unknown() -> Self {
        Self(None)
    }

    /// The Q_Key; 0 if it is not known yet.
    pub const fn value(self) -> u32 {
        match self.0 {
            Some(qkey) => qkey,
            None => 0,
        }
    }

    /// Takes the usual Q_Key of the port space, whatever was known before.
    ///
    /// # Errors
    ///
    /// `ENODEV` for [`PortSpace::Ipoib`], whose Q_Key is that of the interface's broadcast group
    /// ([`Qkey::take_group`]): no link but InfiniBand has one.
    pub fn take_default(&mut self, ps: PortSpace) -> Result<(), Errno> {
        match ps {
            PortSpace::Udp | PortSpace::Ib => self.0 = Some(Self::DEFAULT),
            PortSpace::Ipoib => return Err(Errno::ENODEV),
            PortSpace::Tcp => {}
        }
        Ok(())
    }

    /// Takes the Q_Key of the interface's broadcast group as the usual one, whatever was known before.
    pub fn take_group(&mut self, qkey: u32) {
        self.0 = Some(qkey);
    }

    /// Takes the Q_Key that a peer or a user names.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is 0, or not the one that is known already. A group whose Q_Key is 0 has
    /// none.
    pub fn take(&mut self, qkey: u32) -> Result<(), Errno> {
        if qkey == 0 || (self.value() != 0 && self.value() != qkey) {
            return Err(Errno::EINVAL);
        }
        self.0 = Some(qkey);
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
        // It has none.
        qkey.take_group(0);
        assert_eq!(qkey.value(), 0);
        assert_eq!(qkey.take(5), Ok(()));
        assert_eq!(qkey.value(), 5);
    }
}
