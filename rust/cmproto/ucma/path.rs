// SPDX-License-Identifier: GPL-2.0

//! Path records for user space.

use crate::ucma_abi::{PathRecData, SaPathRecord, UserPathRec};

/// A path record. If it does not come from a subnet administrator (RoCE), its LIDs are 0.
pub type PathRecord = SaPathRecord;

impl SaPathRecord {
    /// The selector of a value that is exact and no bound (IBTA 15.2.5.16).
    pub const EXACTLY: u8 = 2;

    /// Returns the record in the layout of the older commands.
    pub fn to_user(&self) -> UserPathRec {
        UserPathRec {
            dgid: self.dgid.0,
            sgid: self.sgid.0,
            dlid: self.dlid.into(),
            slid: self.slid.into(),
            raw_traffic: self.raw_traffic.into(),
            flow_label: self.flow_label.into(),
            reversible: self.reversible.into(),
            mtu: self.mtu.into(),
            pkey: self.pkey.into(),
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            numb_path: self.numb_path,
            sl: self.sl,
            mtu_selector: self.mtu_selector,
            rate_selector: self.rate_selector,
            rate: self.rate,
            packet_life_time_selector: self.packet_life_time_selector,
            packet_life_time: self.packet_life_time,
            preference: self.preference,
        }
    }

    /// Returns the record in the layout of the newer commands.
    pub fn to_data(&self) -> PathRecData {
        PathRecData {
            flags: PathRecData::BIDIRECTIONAL_PRIMARY,
            reserved: 0,
            path_rec: self.pack(),
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_path))]
mod tests {
    use super::*;
    use crate::addr::Gid;
    use zerocopy::{FromZeros, IntoBytes};

    #[test]
    fn every_field_in_its_place() {
        let record = PathRecord {
            service_id: 0x0106_0000,
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            dlid: 0x1122,
            slid: 0x3344,
            raw_traffic: true,
            flow_label: 0xabcde,
            hop_limit: 0x40,
            traffic_class: 0x68,
            reversible: true,
            numb_path: 1,
            pkey: 0xffff,
            qos_class: 0x123,
            sl: 4,
            mtu_selector: PathRecord::EXACTLY,
            mtu: 3,
            rate_selector: 1,
            rate: 7,
            packet_life_time_selector: 3,
            packet_life_time: 16,
            preference: 9,
        };
        let user = record.to_user();
        let bytes = user.as_bytes();
        assert_eq!(bytes[..16], [0xd0; 16]);
        assert_eq!(bytes[16..32], [0x50; 16]);
        assert_eq!(bytes[32..36], [0x11, 0x22, 0x33, 0x44]);
        assert_eq!(bytes[36..40], 1u32.to_ne_bytes());
        assert_eq!(bytes[40..44], [0, 0x0a, 0xbc, 0xde]);
        assert_eq!(bytes[44..48], 1u32.to_ne_bytes());
        assert_eq!(bytes[48..52], 3u32.to_ne_bytes());
        assert_eq!(
            bytes[52..],
            [0xff, 0xff, 0x40, 0x68, 1, 4, 2, 1, 7, 3, 16, 9]
        );
        let data = record.to_data();
        assert_eq!(data.flags, 0x2b);
        assert_eq!(data.path_rec, record.pack());
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(PathRecord::default().to_user(), UserPathRec::new_zeroed());
    }
}
