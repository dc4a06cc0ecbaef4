// SPDX-License-Identifier: GPL-2.0

//! What the subnet administrator is asked, and what it answers (IBTA 15.2).
//!
//! A question is a record of which only some components count; the component mask says which. Bit 0
//! of a mask is the first component of the record.

use crate::{
    addr::Gid,
    errno::Errno,
    ucma::path::PathRecord,
    ucma_abi::{IbService, UserServiceRec, IB_SERVICE_BY_ID, IB_SERVICE_BY_NAME},
};

/// The components of a path record that count in a question (IBTA 15.2.5.16).
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

/// The components of a service record that count in a question (IBTA 15.2.5.14).
mod service {
    pub(super) const ID: u64 = 1 << 0;
    pub(super) const NAME: u64 = 1 << 6;
}

/// By what the subnet administrator is to choose a service level.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PathClass {
    /// Class of service, 12 bits: with IPv4 the type of service.
    Qos(u16),
    /// Traffic class, as in the GRH: with IPv6 and InfiniBand addresses.
    Traffic(u8),
}

/// A question for one path, there and back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathQuestion {
    /// GID of the other end.
    pub dgid: Gid,
    /// Own GID.
    pub sgid: Gid,
    /// Partition key.
    pub pkey: u16,
    /// Service id of what the path is for.
    pub service_id: u64,
    /// The class of the traffic.
    pub class: PathClass,
}

impl PathQuestion {
    /// The record with what is asked for.
    pub fn record(&self) -> PathRecord {
        let (qos_class, traffic_class) = match self.class {
            PathClass::Qos(class) => (class, 0),
            PathClass::Traffic(class) => (0, class),
        };
        PathRecord {
            service_id: self.service_id,
            dgid: self.dgid,
            sgid: self.sgid,
            pkey: self.pkey,
            reversible: true,
            numb_path: 1,
            qos_class,
            traffic_class,
            ..PathRecord::default()
        }
    }

    /// The component mask.
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

/// A path that somebody answers with.
///
/// The subnet administrator says nothing of its use. A service of this host, which the kernel may
/// ask first, does: it may know a path for messages, one for data to the other end, and one back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathAnswer {
    /// The path.
    pub record: PathRecord,
    /// `IB_PATH_*`; 0 from the subnet administrator.
    pub flags: u32,
}

impl PathAnswer {
    /// For messages.
    const GMP: u32 = 1 << 0;
    /// To the other end.
    const OUTBOUND: u32 = 1 << 3;
    /// From the other end.
    const INBOUND: u32 = 1 << 4;

    /// The path for connections, the last if there are more; those for one direction are left out.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if there is none, or one of no known use.
    pub fn choose(answers: impl Iterator<Item = Self>) -> Result<PathRecord, Errno> {
        let mut chosen = None;
        for answer in answers {
            if answer.flags == 0 || answer.flags & Self::GMP != 0 {
                chosen = Some(answer.record);
            } else if answer.flags & (Self::INBOUND | Self::OUTBOUND) == 0 {
                return Err(Errno::EINVAL);
            }
        }
        chosen.ok_or(Errno::EINVAL)
    }
}

/// A service, as the subnet administrator and programs have it; in network byte order.
pub type ServiceRecord = UserServiceRec;

/// Size of the name of a service, in bytes.
pub const SERVICE_NAME_LEN: usize = 64;

/// A question for services. Without an id and a name it is for all there are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceQuestion {
    /// Service id.
    pub id: Option<u64>,
    /// Name, filled up with zeros.
    pub name: Option<[u8; SERVICE_NAME_LEN]>,
}

impl ServiceQuestion {
    /// The question that a program asks. Its name ends at a zero, or after 63 bytes.
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

    /// The component mask.
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

    fn question(class: PathClass) -> PathQuestion {
        PathQuestion {
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            pkey: 0x8001,
            service_id: 0x0106_1234,
            class,
        }
    }

    #[test]
    fn path_question() {
        let want = PathRecord {
            service_id: 0x0106_1234,
            dgid: Gid([0xd0; 16]),
            sgid: Gid([0x50; 16]),
            pkey: 0x8001,
            reversible: true,
            numb_path: 1,
            ..PathRecord::default()
        };
        let by_tos = question(PathClass::Qos(0x68));
        let record = PathRecord {
            qos_class: 0x68,
            ..want
        };
        assert_eq!((by_tos.record(), by_tos.mask()), (record, 0x780f));
        let by_class = question(PathClass::Traffic(0xa5));
        let record = PathRecord {
            traffic_class: 0xa5,
            ..want
        };
        assert_eq!((by_class.record(), by_class.mask()), (record, 0x3c0f));
    }

    #[test]
    fn only_what_is_masked_is_asked() {
        // Every component of the record beyond the mask is that of an empty record.
        let packed = question(PathClass::Traffic(0)).record().pack();
        assert_eq!(packed[40..49], [0; 9]);
        assert_eq!(packed[49..52], [0x81, 0x80, 0x01]);
        assert_eq!(packed[52..], [0; 12]);
    }

    #[test]
    fn path_for_connections() {
        let answer = |hop_limit, flags| PathAnswer {
            record: PathRecord {
                hop_limit,
                ..PathRecord::default()
            },
            flags,
        };
        let choose = |answers: &[PathAnswer]| {
            PathAnswer::choose(answers.iter().copied()).map(|record| record.hop_limit)
        };
        assert_eq!(choose(&[answer(1, 0)]), Ok(1));
        assert_eq!(choose(&[answer(1, 0x2b)]), Ok(1));
        let both = [answer(1, 0x12), answer(2, 0x2b), answer(3, 0x0a)];
        assert_eq!(choose(&both), Ok(2));
        assert_eq!(choose(&[answer(1, 1), answer(2, 0x2b)]), Ok(2));
        for none in [&[][..], &[answer(1, 0x12), answer(3, 0x0a)]] {
            assert_eq!(choose(none), Err(Errno::EINVAL));
        }
        // Primary, alternate, the way back inbound: of no use by themselves.
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
            let question = ServiceQuestion::from_user(&service);
            assert_eq!(question, ServiceQuestion { id, name });
            assert_eq!(question.mask(), mask);
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
        let name = ServiceQuestion::from_user(&service).name.unwrap();
        assert_eq!(name[..63], [b'n'; 63]);
        assert_eq!(name[63], 0);
    }
}
