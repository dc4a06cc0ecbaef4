// SPDX-License-Identifier: GPL-2.0

//! Queries to the subnet administrator, and its answers (IBTA 15.2).
//!
//! A query is a record of which only some components count, as the component mask says. Bit 0 of a
//! mask stands for the first component of the record.

use crate::{
    addr::Gid,
    errno::Errno,
    ucma::path::PathRecord,
    ucma_abi::{IbService, SaPathRecord, UserServiceRec, IB_SERVICE_BY_ID, IB_SERVICE_BY_NAME},
};

/// Bits of the component mask of a path record (IBTA 15.2.5.16).
mod path {
    pub(super) const SERVICE_ID: u64 = 0b11;
    pub(super) const DGID: u64 = 1 << 2;
    pub(super) const SGID: u64 = 1 << 3;
    pub(super) const TRAFFIC_CLASS: u64 = 1 << 10;
    pub(super) const REVERSIBLE: u64 = 1 << 11;
    pub(super) const NUMB_PATH: u64 = 1 << 12;
    pub(super) const PKEY: u64 = 1 << 13;
    pub(super) const QOS_CLASS: u64 = 1 << 14;
}

/// Bits of the component mask of a service record (IBTA 15.2.5.14).
mod service {
    pub(super) const ID: u64 = 1 << 0;
    pub(super) const NAME: u64 = 1 << 6;
}

/// The class of a path's traffic, from which the subnet administrator chooses the service level.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PathClass {
    /// QoS class, 12 bits: the type of service, with IPv4.
    Qos(u16),
    /// Traffic class, as in the GRH: with IPv6 and native addresses.
    Traffic(u8),
}

/// A query for one path that is reversible.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathQuery {
    /// GID of the peer.
    pub dgid: Gid,
    /// GID of this end.
    pub sgid: Gid,
    /// P_Key.
    pub pkey: u16,
    /// Service id that the path is for.
    pub service_id: u64,
    /// Class of the traffic.
    pub class: PathClass,
}

impl PathQuery {
    /// Returns the record of the query.
    pub fn record(&self) -> SaPathRecord {
        let (qos_class, traffic_class) = match self.class {
            PathClass::Qos(class) => (class, 0),
            PathClass::Traffic(class) => (0, class),
        };
        SaPathRecord {
            service_id: self.service_id,
            dgid: self.dgid,
            sgid: self.sgid,
            pkey: self.pkey,
            reversible: true,
            numb_path: 1,
            qos_class,
            traffic_class,
            ..SaPathRecord::default()
        }
    }

    /// Returns the component mask of the query.
    pub const fn mask(&self) -> u64 {
        let class = match self.class {
            PathClass::Qos(_) => path::QOS_CLASS,
            PathClass::Traffic(_) => path::TRAFFIC_CLASS,
        };
        path::SERVICE_ID
            | path::DGID
            | path::SGID
            | path::REVERSIBLE
            | path::NUMB_PATH
            | path::PKEY
            | class
    }
}

/// A path in an answer, with its use.
///
/// The subnet administrator does not say what a path is for. A service of this host, which the
/// kernel may ask first, does: it may know one path for messages, one for data to the peer, and one
/// for data back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathResponse {
    /// The path record.
    pub record: PathRecord,
    /// The use of the path, `IB_PATH_*`; 0 from the subnet administrator.
    pub flags: u32,
}

impl PathResponse {
    /// The flag `IB_PATH_GMP`: the path is for messages.
    const GMP: u32 = 1 << 0;
    /// The flag `IB_PATH_OUTBOUND`: the path leads to the peer.
    const OUTBOUND: u32 = 1 << 3;
    /// The flag `IB_PATH_INBOUND`: the path leads back from the peer.
    const INBOUND: u32 = 1 << 4;

    /// Returns the path for connections, and the LIDs of the paths for data in one direction. The
    /// last one of each use counts.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if there is no path for connections, or if the use of a path is not known.
    pub fn choose(answers: impl Iterator<Item = Self>) -> Result<ChosenPath, Errno> {
        let (mut chosen, mut data_lids) = (None, DataLids::default());
        for answer in answers {
            let lid = answer.record.sa.dlid;
            if answer.flags == 0 || answer.flags & Self::GMP != 0 {
                chosen = Some(answer.record);
            } else if answer.flags & Self::INBOUND != 0 {
                data_lids.inbound = lid;
            } else if answer.flags & Self::OUTBOUND != 0 {
                data_lids.outbound = lid;
            } else {
                return Err(Errno::EINVAL);
            }
        }
        let record = chosen.ok_or(Errno::EINVAL)?;
        Ok(ChosenPath { record, data_lids })
    }
}

/// The LIDs for the data of a connection, if they differ from those of its messages; else 0.
///
/// This is so if a consumer, or who has answered in place of the subnet administrator, has given
/// separate paths for the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataLids {
    /// The destination LID of the peer's data, which is sent through routers.
    pub inbound: u16,
    /// The destination LID of this end's data.
    pub outbound: u16,
}

/// The path of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenPath {
    /// The path of the messages.
    pub record: PathRecord,
    /// The LIDs of the data.
    pub data_lids: DataLids,
}

/// A service record, in network byte order.
pub type ServiceRecord = UserServiceRec;

/// Size of a service name, in bytes.
pub const SERVICE_NAME_LEN: usize = 64;

/// A query for services. Without an id and a name it asks for all services.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceQuery {
    /// Service id.
    pub id: Option<u64>,
    /// Service name, padded with zeros.
    pub name: Option<[u8; SERVICE_NAME_LEN]>,
}

impl ServiceQuery {
    /// Returns the query that a program asks for. The service name ends at a zero, or after 63
    /// bytes.
    pub fn from_user(service: &IbService) -> Self {
        let mut name = service.service_name;
        let [len @ .., _] = &service.service_name;
        let len = len.iter().take_while(|byte| **byte != 0).count();
        if let Some(rest) = name.get_mut(len..) {
            rest.fill(0);
        }
        Self {
            id: (service.flags & IB_SERVICE_BY_ID != 0).then_some(service.service_id),
            name: (service.flags & IB_SERVICE_BY_NAME != 0).then_some(name),
        }
    }

    /// Returns the component mask of the query.
    pub const fn mask(&self) -> u64 {
        let id = if self.id.is_some() { service::ID } else { 0 };
        let name = if self.name.is_some() {
            service::NAME
        } else {
            0
        };
        id | name
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_sa))]
mod tests {
    use super::*;

    fn query(class: PathClass) -> PathQuery {
        PathQuery {
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            pkey: 0x8001,
            service_id: 0x0106_1234,
            class,
        }
    }

    #[test]
    fn path_question() {
        let want = SaPathRecord {
            service_id: 0x0106_1234,
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            pkey: 0x8001,
            reversible: true,
            numb_path: 1,
            ..SaPathRecord::default()
        };
        let by_tos = query(PathClass::Qos(0x68));
        let record = SaPathRecord {
            qos_class: 0x68,
            ..want
        };
        assert_eq!((by_tos.record(), by_tos.mask()), (record, 0x780f));
        let by_class = query(PathClass::Traffic(0xa5));
        let record = SaPathRecord {
            traffic_class: 0xa5,
            ..want
        };
        assert_eq!((by_class.record(), by_class.mask()), (record, 0x3c0f));
    }

    #[test]
    fn only_what_is_masked_is_asked() {
        // All components beyond the mask are those of an empty record.
        let packed = query(PathClass::Traffic(0)).record().pack();
        assert_eq!(packed[40..49], [0; 9]);
        assert_eq!(packed[49..52], [0x81, 0x80, 0x01]);
        assert_eq!(packed[52..], [0; 12]);
    }

    #[test]
    fn path_for_connections() {
        let answer = |dlid, flags| PathResponse {
            record: PathRecord::from(SaPathRecord {
                dlid,
                ..SaPathRecord::default()
            }),
            flags,
        };
        let choose = |answers: &[PathResponse]| {
            let chosen = PathResponse::choose(answers.iter().copied())?;
            let lids = chosen.data_lids;
            Ok((chosen.record.sa.dlid, lids.inbound, lids.outbound))
        };
        assert_eq!(choose(&[answer(1, 0)]), Ok((1, 0, 0)));
        assert_eq!(choose(&[answer(1, 0x2b)]), Ok((1, 0, 0)));
        let both = [answer(1, 0x12), answer(2, 0x2b), answer(3, 0x0a)];
        assert_eq!(choose(&both), Ok((2, 1, 3)));
        assert_eq!(choose(&[answer(1, 1), answer(2, 0x2b)]), Ok((2, 0, 0)));
        let twice = [answer(1, 0x0a), answer(2, 0), answer(3, 0x0a)];
        assert_eq!(choose(&twice), Ok((2, 0, 3)));
        // A path for messages is one whatever else it is, and one for both directions is inbound.
        assert_eq!(choose(&[answer(1, 0x1b)]), Ok((1, 0, 0)));
        assert_eq!(choose(&[answer(1, 0), answer(2, 0x18)]), Ok((1, 2, 0)));
        for none in [&[][..], &[answer(1, 0x12), answer(3, 0x0a)]] {
            assert_eq!(choose(none), Err(Errno::EINVAL));
        }
        // A primary path, an alternate path, and the reverse of an inbound path are of no use by
        // themselves.
        for flags in [0x02, 0x04, 0x20, 0x8000_0000] {
            let answers = [answer(1, 0), answer(2, flags)];
            assert_eq!(choose(&answers), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn service_question() {
        let mut service = IbService {
            service_id: 0x1122,
            service_name: [0; SERVICE_NAME_LEN],
            flags: 0,
            reserved: 9,
        };
        service.service_name[..6].copy_from_slice(b"abc\0de");
        let mut name = [0; SERVICE_NAME_LEN];
        name[..3].copy_from_slice(b"abc");
        let table = [
            (0, None, None, 0),
            (1, Some(0x1122), None, 1),
            (2, None, Some(name), 0x40),
            (3, Some(0x1122), Some(name), 0x41),
            (0xffff_fffc, None, None, 0),
        ];
        for (flags, id, name, mask) in table {
            service.flags = flags;
            let query = ServiceQuery::from_user(&service);
            assert_eq!(query, ServiceQuery { id, name });
            assert_eq!(query.mask(), mask);
        }
    }

    #[test]
    fn name_without_an_end() {
        let service = IbService {
            service_id: 0,
            service_name: [b'n'; SERVICE_NAME_LEN],
            flags: IB_SERVICE_BY_NAME,
            reserved: 0,
        };
        let name = ServiceQuery::from_user(&service).name.unwrap();
        assert_eq!(name[..63], [b'n'; 63]);
        assert_eq!(name[63], 0);
    }
}
