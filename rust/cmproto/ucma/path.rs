// SPDX-License-Identifier: GPL-2.0

//! Path records, and their forms for user space.

use crate::{
    opa::{self, OpaPath},
    path::Path,
    ucma_abi::{PathRecData, SaPathRecord, UserPathRec},
};

/// A path record. If it does not come from a subnet administrator (RoCE), its LIDs are 0.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRecord {
    /// The record as InfiniBand has it, without LIDs if the path is one over Omni-Path.
    pub sa: SaPathRecord,
    /// The fields of a path over Omni-Path.
    pub opa: Option<OpaPath>,
}

impl From<SaPathRecord> for PathRecord {
    fn from(sa: SaPathRecord) -> Self {
        PathRecord { sa, opa: None }
    }
}

/// The path that a program is shown.
#[derive(Copy, Clone, Debug)]
pub enum ShownPath<'a> {
    /// The record that the consumer has set, or the subnet administrator has found.
    Record(&'a PathRecord),
    /// A path of which there is no record.
    Path(&'a Path),
}

impl ShownPath<'_> {
    /// Returns the record of the path as programs see it. It is inlined, so that the record is made
    /// in the form that is asked for.
    #[inline(always)]
    pub fn to_ib(self) -> SaPathRecord {
        match self {
            Self::Record(record) => record.to_ib(),
            Self::Path(path) if path.is_opa => path.to_record().to_ib(),
            Self::Path(path) => path.to_sa_record(),
        }
    }
}

impl PathRecord {
    /// Returns `record` as one of Omni-Path with these LIDs.
    pub fn of_opa(record: SaPathRecord, slid: u32, dlid: u32) -> Self {
        let sa = SaPathRecord {
            slid: 0,
            dlid: 0,
            ..record
        };
        let opa = OpaPath {
            slid,
            dlid,
            ..OpaPath::default()
        };
        PathRecord { sa, opa: Some(opa) }
    }

    /// Returns the LIDs of this end and of the peer.
    pub fn lids(&self) -> (u32, u32) {
        match &self.opa {
            Some(opa) => (opa.slid, opa.dlid),
            None => (self.sa.slid.into(), self.sa.dlid.into()),
        }
    }

    /// Returns the record as programs see it. A path over Omni-Path has its LIDs in the GIDs if
    /// they have no other place (C's `sa_convert_path_opa_to_ib()`).
    #[cold]
    pub fn to_ib(&self) -> SaPathRecord {
        let Some(opa) = &self.opa else {
            return self.sa;
        };
        if !opa::is_extended(opa.slid, opa.dlid) {
            return SaPathRecord {
                slid: opa::short_lid(opa.slid),
                dlid: opa::short_lid(opa.dlid),
                ..self.sa
            };
        }
        let (own, peer) = ((&self.sa.sgid, opa.slid), (&self.sa.dgid, opa.dlid));
        let (sgid, dgid) = opa::gids(own, peer);
        SaPathRecord {
            sgid,
            dgid,
            ..self.sa
        }
    }

    /// Returns the path over Omni-Path of a record that a program has given. Its LIDs are those in
    /// the GIDs, if one of these is made from a LID (C's `sa_convert_path_ib_to_opa()`).
    pub fn from_ib(record: &SaPathRecord) -> Self {
        let (slid, dlid) = if record.sgid.is_opa() || record.dgid.is_opa() {
            (record.sgid.opa_lid(), record.dgid.opa_lid())
        } else {
            (record.slid.into(), record.dlid.into())
        };
        Self::of_opa(*record, slid, dlid)
    }
}

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
        let record = SaPathRecord {
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
            mtu_selector: SaPathRecord::EXACTLY,
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
        assert_eq!(SaPathRecord::default().to_user(), UserPathRec::new_zeroed());
    }

    /// Returns a record of InfiniBand with these LIDs.
    fn with_lids(slid: u16, dlid: u16) -> SaPathRecord {
        SaPathRecord {
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            dlid,
            slid,
            raw_traffic: true,
            hop_limit: 1,
            pkey: 0x8001,
            ..SaPathRecord::default()
        }
    }

    #[test]
    fn infiniband_is_shown_as_it_is() {
        let record = with_lids(0xc001, 2);
        assert_eq!(PathRecord::from(record).to_ib(), record);
        assert_eq!(PathRecord::from(record).lids(), (0xc001, 2));
    }

    #[test]
    fn short_lids_of_omni_path_are_those_of_infiniband() {
        let record = with_lids(0xbfff, 2);
        let path = PathRecord::from_ib(&record);
        assert_eq!(path.lids(), (0xbfff, 2));
        assert_eq!((path.sa.slid, path.sa.dlid), (0, 0));
        assert_eq!(path.to_ib(), record);
    }

    #[test]
    fn long_lids_of_omni_path_are_shown_in_the_gids() {
        for (slid, dlid) in [(0x0001_0001, 2), (1, 0xc000), (0xffff_fffe, 0x0012_3456)] {
            let record = with_lids(0, 0);
            let path = PathRecord::of_opa(record, slid, dlid);
            let shown = path.to_ib();
            let want = SaPathRecord {
                sgid: record.sgid.with_opa_lid(slid),
                dgid: record.dgid.with_opa_lid(dlid),
                ..record
            };
            assert_eq!(shown, want);
            let back = PathRecord::from_ib(&shown);
            assert_eq!(back.lids(), (slid, dlid));
            assert_eq!(back.to_ib(), shown);
        }
    }

    #[test]
    fn one_gid_with_a_lid_makes_both_lids() {
        let mut record = with_lids(7, 8);
        record.dgid = record.dgid.with_opa_lid(9);
        let path = PathRecord::from_ib(&record);
        assert_eq!(path.lids(), (0x5050_5050, 9));
    }
}
