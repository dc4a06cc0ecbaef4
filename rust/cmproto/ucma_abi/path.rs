// SPDX-License-Identifier: GPL-2.0

//! Path records, in the layouts of user space and of the subnet administrator.

use zerocopy::big_endian;

use crate::addr::Gid;
use crate::wire::field::{Bytes, Field};

abi_struct! {
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
}

abi_struct! {
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
    /// (`IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL`). There are no other paths.
    pub const BIDIRECTIONAL_PRIMARY: u32 = 0x2b;
}

/// Size of a packed [`SaPathRecord`], in bytes.
pub const SA_PATH_RECORD_LEN: usize = 64;

/// The path record of the subnet administrator (IBTA 15.2.5.16), in host byte order.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SaPathRecord {
    /// Service id.
    pub service_id: u64,
    /// GID of the peer.
    pub dgid: Gid,
    /// GID of this end.
    pub sgid: Gid,
    /// LID of the peer.
    pub dlid: u16,
    /// LID of this end.
    pub slid: u16,
    /// Set for raw traffic.
    pub raw_traffic: bool,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Set if the path can be used in both directions.
    pub reversible: bool,
    /// The number of paths that are asked for, 7 bits.
    pub numb_path: u8,
    /// P_Key.
    pub pkey: u16,
    /// QoS class, 12 bits.
    pub qos_class: u16,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Comparison with `mtu`, 2 bits: 0 greater, 1 less, 2 exactly, 3 largest.
    pub mtu_selector: u8,
    /// MTU, a 6-bit code (`enum ib_mtu`).
    pub mtu: u8,
    /// Comparison with `rate`, 2 bits, as for the MTU.
    pub rate_selector: u8,
    /// Static rate, a 6-bit code (`enum ib_rate`).
    pub rate: u8,
    /// Comparison with `packet_life_time`, 2 bits, as for the MTU.
    pub packet_life_time_selector: u8,
    /// Packet life time, a 6-bit IBTA time code.
    pub packet_life_time: u8,
    /// Preference.
    pub preference: u8,
}

type ServiceId = Field<u64, 0, 0, 64>;
type Dgid = Bytes<8, 16>;
type Sgid = Bytes<24, 16>;
type Dlid = Field<u16, 40, 0, 16>;
type Slid = Field<u16, 42, 0, 16>;
type RawTraffic = Field<bool, 44, 0, 1>;
type FlowLabel = Field<u32, 44, 4, 20>;
type HopLimit = Field<u8, 47, 0, 8>;
type TrafficClass = Field<u8, 48, 0, 8>;
type Reversible = Field<bool, 49, 0, 1>;
type NumbPath = Field<u8, 49, 1, 7>;
type Pkey = Field<u16, 50, 0, 16>;
type QosClass = Field<u16, 52, 0, 12>;
type Sl = Field<u8, 53, 4, 4>;
type MtuSelector = Field<u8, 54, 0, 2>;
type Mtu = Field<u8, 54, 2, 6>;
type RateSelector = Field<u8, 55, 0, 2>;
type Rate = Field<u8, 55, 2, 6>;
type PacketLifeTimeSelector = Field<u8, 56, 0, 2>;
type PacketLifeTime = Field<u8, 56, 2, 6>;
type Preference = Field<u8, 57, 0, 8>;

impl SaPathRecord {
    /// Unpacks the record in `buf`. The six reserved bytes at the end are ignored.
    pub fn unpack(buf: &[u8; SA_PATH_RECORD_LEN]) -> Self {
        Self {
            service_id: ServiceId::get(buf),
            dgid: Gid(*Dgid::get(buf)),
            sgid: Gid(*Sgid::get(buf)),
            dlid: Dlid::get(buf),
            slid: Slid::get(buf),
            raw_traffic: RawTraffic::get(buf),
            flow_label: FlowLabel::get(buf),
            hop_limit: HopLimit::get(buf),
            traffic_class: TrafficClass::get(buf),
            reversible: Reversible::get(buf),
            numb_path: NumbPath::get(buf),
            pkey: Pkey::get(buf),
            qos_class: QosClass::get(buf),
            sl: Sl::get(buf),
            mtu_selector: MtuSelector::get(buf),
            mtu: Mtu::get(buf),
            rate_selector: RateSelector::get(buf),
            rate: Rate::get(buf),
            packet_life_time_selector: PacketLifeTimeSelector::get(buf),
            packet_life_time: PacketLifeTime::get(buf),
            preference: Preference::get(buf),
        }
    }

    /// Packs the record. Numbers are cut to the width of their fields.
    pub fn pack(&self) -> [u8; SA_PATH_RECORD_LEN] {
        let mut buf = [0; SA_PATH_RECORD_LEN];
        ServiceId::set(&mut buf, self.service_id);
        Dgid::set(&mut buf, &self.dgid.0);
        Sgid::set(&mut buf, &self.sgid.0);
        Dlid::set(&mut buf, self.dlid);
        Slid::set(&mut buf, self.slid);
        RawTraffic::set(&mut buf, self.raw_traffic);
        FlowLabel::set(&mut buf, self.flow_label);
        HopLimit::set(&mut buf, self.hop_limit);
        TrafficClass::set(&mut buf, self.traffic_class);
        Reversible::set(&mut buf, self.reversible);
        NumbPath::set(&mut buf, self.numb_path);
        Pkey::set(&mut buf, self.pkey);
        QosClass::set(&mut buf, self.qos_class);
        Sl::set(&mut buf, self.sl);
        MtuSelector::set(&mut buf, self.mtu_selector);
        Mtu::set(&mut buf, self.mtu);
        RateSelector::set(&mut buf, self.rate_selector);
        Rate::set(&mut buf, self.rate);
        PacketLifeTimeSelector::set(&mut buf, self.packet_life_time_selector);
        PacketLifeTime::set(&mut buf, self.packet_life_time);
        Preference::set(&mut buf, self.preference);
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
