// SPDX-License-Identifier: GPL-2.0

//! Multicast groups.

use crate::{
    endpoint::{Endpoint, Event, EventParam, Inner, UdEventParam},
    ib::{
        addr::roce_path_mtu,
        gid::{GidAttr, GidType},
    },
    kext::{
        error::{ResultExt, ToKernel},
        igmp::IgmpMembership,
        netdev::NetDevice,
    },
};
use cmproto::{
    addr::SockAddr,
    cma::{Qkey, State},
    errno::Errno,
    mcast::{Encapsulation, Member, RoceGroup, MULTICAST_QPN},
    ucma_abi::{CmEvent, UverbsAhAttr, UverbsGlobalRoute},
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, rbtree::RBTreeNodeReservation, sync::aref::ARef,
};
use zerocopy::FromZeros;

/// `enum ib_qp_type` of unreliable datagrams.
const QPT_UD: u8 = 4;

/// The membership of an endpoint in a group.
///
/// Dropping it takes the lock of all network interfaces, and so must happen under no other.
pub(crate) struct Group {
    _igmp: Option<IgmpMembership>,
}

/// Where an endpoint joins a group.
///
/// It holds no reference to the device, as the lock of all network interfaces is waited for: whoever
/// removes the device may hold that one.
struct Site {
    group: RoceGroup,
    netdev: ARef<NetDevice>,
    port_num: u8,
    /// Index of the own GID.
    sgid_index: Result<u8>,
}

impl Site {
    /// Where `inner` joins the group that `addr` stands for.
    fn new(endpoint: &Endpoint, inner: &Inner, addr: &SockAddr, member: Member) -> Result<Self> {
        let attachment = inner.device.as_ref().ok_or(EINVAL)?;
        if !matches!(inner.state, State::AddrBound | State::AddrResolved) {
            return Err(EINVAL);
        }
        if endpoint.qp_type != QPT_UD {
            return Err(EINVAL);
        }
        let device = &attachment.device.device;
        if !device.protocol_roce(attachment.port_num) {
            return Err(Errno::ENOSYS.to_kernel());
        }
        RoceGroup::check(addr).kernel()?;
        let link = inner.link.as_ref().ok_or(ENODEV)?;
        let netdev = NetDevice::by_index(&endpoint.net, link.bound_dev_if).ok_or(ENODEV)?;
        let port = attachment.device.port(attachment.port_num).ok_or(ENODEV)?;
        let encapsulation = match port.default_gid_type() {
            GidType::RoceV2 => Encapsulation::Udp,
            GidType::Ib | GidType::RoceV1 => Encapsulation::Grh,
        };
        let own = GidAttr::find_by_port(
            device,
            attachment.port_num,
            &inner.src.to_gid(),
            port.default_gid_type(),
            Some(&netdev),
        );
        Ok(Site {
            group: RoceGroup::new(addr, encapsulation, member).kernel()?,
            netdev,
            port_num: u8::try_from(attachment.port_num).unwrap_or(0),
            sgid_index: own.map(|own| u8::try_from(own.index()).unwrap_or(0)),
        })
    }

    /// The event of having joined, by which the members are reached with `qkey`; an error if the own
    /// address has gone meanwhile.
    fn event(&self, qkey: u32) -> Event<'static> {
        let sgid_index = match self.sgid_index {
            Ok(index) => index,
            Err(error) => return Event::new(CmEvent::MulticastError, error.to_errno()),
        };
        let param = UdEventParam {
            ah_attr: UverbsAhAttr {
                grh: UverbsGlobalRoute {
                    dgid: self.group.mgid.0,
                    sgid_index,
                    hop_limit: self.group.hop_limit,
                    ..FromZeros::new_zeroed()
                },
                is_global: 1,
                port_num: self.port_num,
                ..FromZeros::new_zeroed()
            },
            qp_num: MULTICAST_QPN,
            qkey,
            ..UdEventParam::with_private_data(&[])
        };
        Event {
            param: EventParam::Ud(param),
            ..Event::new(CmEvent::MulticastJoin, 0)
        }
    }
}

impl Endpoint {
    /// Joins the group that `addr` stands for, as `number`, which no other group has. Returns the
    /// event that tells of it, for [`Endpoint::tell_group`].
    ///
    /// Takes the lock of all network interfaces. Fails with `EINVAL` (no device, the state, no
    /// datagrams, a wildcard, an interface with too small an MTU), `ENODEV` (no interface, one
    /// without IPv4, or a dead endpoint), `ENOTSUPP` (not IPv4 over RoCE v2) or `ENOMEM`; nothing has
    /// changed then.
    pub(crate) fn join_group(
        &self,
        number: u64,
        addr: &SockAddr,
        member: Member,
    ) -> Result<Event<'static>> {
        let room = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let site = Site::new(self, &self.inner.lock(), addr, member)?;
        let igmp = match site.group.igmp {
            Some(group) => Some(IgmpMembership::join(&self.net, &site.netdev, group)?),
            None => None,
        };
        roce_path_mtu(site.netdev.mtu()).ok_or(EINVAL)?;
        let node = room.into_node(number, Group { _igmp: igmp });

        // Given back before `node` is dropped.
        let mut inner = self.inner.lock();
        if inner.is_dead() {
            return Err(ENODEV);
        }
        inner.groups.insert(node);
        if inner.qkey == Qkey::unknown() {
            // Without one the groups are reported with 0.
            let _ = inner.qkey.take_default(self.ps);
        }
        Ok(site.event(inner.qkey.value()))
    }

    /// Leaves a group, if it is still joined.
    ///
    /// Takes the lock of all network interfaces.
    pub(crate) fn leave_group(&self, number: u64) {
        let node = self.inner.lock().groups.remove_node(&number);
        drop(node);
    }

    /// Tells the consumer what became of a group, unless the endpoint has died meanwhile.
    pub(crate) fn tell_group(&self, number: u64, event: &Event<'_>) {
        let inner = self.inner.lock();
        if let Some(consumer) = inner.consumer.as_ref().filter(|_| !inner.is_dead()) {
            consumer.group_event(number, event);
        }
    }
}
