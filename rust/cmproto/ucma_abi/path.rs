// SPDX-License-Identifier: GPL-2.0

//! Path records, in the layouts of user space and of the subnet administrator.

use zerocopy::big_endian;

use crate::addr::Gid;
use crate::wire::field::{layout, Field, GidField};

abi_structs! {
    /// A path (`struct ib_user_path_rec`).
    pub struct UserPathRec: 64 {
        /// GID of the peer.
        dgid: [u8; 16] = 0,
        /// GID of this end.
        sgid: [u8; 16] = 16,
        /// LID of the peer.
        dlid: big_endian::U16 = 32,
        /// LID of this end.
        slid: big_endian::U16 = 34,
        /// Non-zero for raw traffic.
        raw_traffic: u32 = 36,
        /// Flow label, 20 bits.
        flow_label: big_endian::U32 = 40,
        /// Non-zero if the path can be used in both directions.
        reversible: u32 = 44,
        /// MTU, `enum ib_mtu`.
        mtu: u32 = 48,
        /// P_Key.
        pkey: big_endian::U16 = 52,
        /// Hop limit.
        hop_limit: u8 = 54,
        /// Traffic class.
        traffic_class: u8 = 55,
        /// The number of paths that are asked for.
        numb_path: u8 = 56,
        /// Service level, 4 bits.
        sl: u8 = 57,
        /// Comparison with `mtu`.
        mtu_selector: u8 = 58,
        /// Comparison with `rate`.
        rate_selector: u8 = 59,
        /// Static rate, `enum ib_rate`.
        rate: u8 = 60,
        /// Comparison with `packet_life_time`.
        packet_life_time_selector: u8 = 61,
        /// Packet life time, an IBTA time code.
        packet_life_time: u8 = 62,
        /// Preference.
        preference: u8 = 63,
    }

    /// A path record with the use of the path (`struct ib_path_rec_data`).
    pub struct PathRecData: 72 {
        /// The use of the path, `IB_PATH_*`: see [`PathRecData::BIDIRECTIONAL_PRIMARY`].
        flags: u32 = 0,
        /// Zero.
        reserved: u32 = 4,
        /// The record in the layout of the subnet administrator: a packed [`SaPathRecord`].
        path_rec: [u8; SA_PATH_RECORD_LEN] = 8,
    }
}

impl PathRecData {
    /// The flags of a path that is primary, reversible, and used for messages and data
    /// (`IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL`).
    pub const BIDIRECTIONAL_PRIMARY: u32 = 0x2b;
    /// The flags of an alternate path for data in both directions (`IB_PATH_ALTERNATE |
    /// IB_PATH_BIDIRECTIONAL`).
    pub const BIDIRECTIONAL_ALTERNATE: u32 = 0x2c;
}

/// Size of a packed [`SaPathRecord`], in bytes.
pub const SA_PATH_RECORD_LEN: usize = 64;

layout! {
    /// The path record of the subnet administrator (IBTA 15.2.5.16), in host byte order.
    #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
    pub struct SaPathRecord: SA_PATH_RECORD_LEN {
        /// Service id.
        service_id: u64 = Field<_, 0, 0, 64>,
        /// GID of the peer.
        dgid: Gid = GidField<8>,
        /// GID of this end.
        sgid: Gid = GidField<24>,
        /// LID of the peer.
        dlid: u16 = Field<_, 40, 0, 16>,
        /// LID of this end.
        slid: u16 = Field<_, 42, 0, 16>,
        /// Set for raw traffic.
        raw_traffic: bool = Field<_, 44, 0, 1>,
        /// Flow label, 20 bits.
        flow_label: u32 = Field<_, 44, 4, 20>,
        /// Hop limit.
        hop_limit: u8 = Field<_, 47, 0, 8>,
        /// Traffic class.
        traffic_class: u8 = Field<_, 48, 0, 8>,
        /// Set if the path can be used in both directions.
        reversible: bool = Field<_, 49, 0, 1>,
        /// The number of paths that are asked for, 7 bits.
        numb_path: u8 = Field<_, 49, 1, 7>,
        /// P_Key.
        pkey: u16 = Field<_, 50, 0, 16>,
        /// QoS class, 12 bits.
        qos_class: u16 = Field<_, 52, 0, 12>,
        /// Service level, 4 bits.
        sl: u8 = Field<_, 53, 4, 4>,
        /// Comparison with `mtu`, 2 bits: 0 greater, 1 less, 2 exactly, 3 largest.
        mtu_selector: u8 = Field<_, 54, 0, 2>,
        /// MTU, a 6-bit code (`enum ib_mtu`).
        mtu: u8 = Field<_, 54, 2, 6>,
        /// Comparison with `rate`, 2 bits, as for the MTU.
        rate_selector: u8 = Field<_, 55, 0, 2>,
        /// Static rate, a 6-bit code (`enum ib_rate`).
        rate: u8 = Field<_, 55, 2, 6>,
        /// Comparison with `packet_life_time`, 2 bits, as for the MTU.
        packet_life_time_selector: u8 = Field<_, 56, 0, 2>,
        /// Packet life time, a 6-bit IBTA time code.
        packet_life_time: u8 = Field<_, 56, 2, 6>,
        /// Preference.
        preference: u8 = Field<_, 57, 0, 8>,
    }
}

impl SaPathRecord {
    /// Unpacks the record in `buf`. The six reserved bytes at the end are ignored.
    pub fn unpack(buf: &[u8; SA_PATH_RECORD_LEN]) -> Self {
        Self::decode(buf)
    }

    /// Packs the record. Numbers are cut to the width of their fields.
    pub fn pack(&self) -> [u8; SA_PATH_RECORD_LEN] {
        let mut buf = [0; SA_PATH_RECORD_LEN];
        self.encode(&mut buf);
        buf
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_abi_path)
)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_but_the_reserved_is_in_a_field() {
        for bit in 0..SA_PATH_RECORD_LEN * 8 {
            let mut buf = [0; SA_PATH_RECORD_LEN];
            buf[bit / 8] = 0x80 >> (bit % 8);
            // The reserved bits: three behind raw traffic, and six bytes at the end.
            let reserved = (353..356).contains(&bit) || bit >= 464;
            let record = SaPathRecord::unpack(&buf);
            let is_empty = record == SaPathRecord::default();
            assert_eq!((bit, is_empty), (bit, reserved));
            let want = if reserved {
                [0; SA_PATH_RECORD_LEN]
            } else {
                buf
            };
            assert_eq!(record.pack(), want);
        }
    }

    #[test]
    fn record_bytes() {
        let record = SaPathRecord {
            service_id: 0x0106_1234,
            dgid: Gid([1; 16]),
            sgid: Gid([2; 16]),
            dlid: 0x1122,
            slid: 0x3344,
            raw_traffic: true,
            flow_label: 0xabcde,
            hop_limit: 64,
            traffic_class: 0x55,
            reversible: true,
            numb_path: 1,
            pkey: 0xffff,
            qos_class: 0x123,
            sl: 4,
            mtu_selector: 2,
            mtu: 5,
            rate_selector: 2,
            rate: 7,
            packet_life_time_selector: 2,
            packet_life_time: 18,
            preference: 9,
        };
        let buf = record.pack();
        assert_eq!(buf[..8], [0, 0, 0, 0, 1, 6, 0x12, 0x34]);
        assert_eq!(buf[8..24], [1; 16]);
        assert_eq!(buf[24..40], [2; 16]);
        assert_eq!(
            buf[40..],
            [
                0x11, 0x22, 0x33, 0x44, 0x8a, 0xbc, 0xde, 64, 0x55, 0x81, 0xff, 0xff, 0x12, 0x34,
                0x85, 0x87, 0x92, 9, 0, 0, 0, 0, 0, 0
            ]
        );
        assert_eq!(SaPathRecord::unpack(&buf), record);
    }
}
