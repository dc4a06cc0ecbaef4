// SPDX-License-Identifier: GPL-2.0

//! Memberships in multicast groups.
//!
//! On RoCE an endpoint becomes a member at once. On InfiniBand the subnet administrator is asked,
//! and may end the membership later.

use crate::{
    endpoint::{Endpoint, EndpointRef, Event, EventParam, Group, GroupAnswer, Inner, UdEventParam},
    ib::{
        addr::roce_path_mtu,
        debug::{self, Failure},
        gid::{GidAttr, GidType},
        sa::{broadcast_group, JoinDone, McMember, McRequest},
    },
    kext::{
        error::{ResultExt, ToKernel},
        ip_multicast::IpMembership,
        netdev::NetDevice,
    },
};
use cmproto::{
    addr::SockAddr,
    cma::{Qkey, State},
    errno::Errno,
    mcast::{Encapsulation, Member, RoceGroup, MULTICAST_QPN},
    qp::QpType,
    service_id::PortSpace,
    stored_addr::StoredAddr,
    ucma_abi::{CmEvent, UverbsAhAttr, UverbsGlobalRoute},
};
use core::mem;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::RBTreeNodeReservation,
    sync::{aref::ARef, Arc},
};
use zerocopy::FromZeros;

/// The outcome of a join, to be reported when the consumer knows the number of the membership.
pub(crate) enum Joined {
    /// The endpoint is a member.
    Member(Event<'static>),
    /// The subnet administrator was asked; its answer is reported as soon as it comes.
    Pending,
}

/// The parameters of a join on RoCE.
///
/// There is no reference to the device among them: joining waits for the lock of all network
/// interfaces (RTNL), which a task that removes the device may hold.
struct RoceJoin {
    group: RoceGroup,
    netdev: ARef<NetDevice>,
    port_num: u8,
    /// Index of the source GID, or the error of its lookup.
    sgid_index: Result<u8>,
}

/// Returns the event of having joined a group, whose address vector and Q_Key are `ah_attr` and
/// `qkey`.
fn joined(ah_attr: UverbsAhAttr, qkey: u32) -> Event<'static> {
    let param = UdEventParam {
        ah_attr,
        qp_num: MULTICAST_QPN,
        qkey,
        ..UdEventParam::with_private_data(&[])
    };
    Event {
        param: EventParam::Ud(param),
        ..Event::new(CmEvent::MulticastJoin, 0)
    }
}

impl RoceJoin {
    /// Returns the parameters with which `inner` joins the group of `addr`.
    fn new(endpoint: &Endpoint, inner: &Inner, addr: &SockAddr, member: Member) -> Result<Self> {
        let attachment = inner.device.as_ref().ok_or(EINVAL)?;
        if !attachment.is_roce() {
            return Err(Errno::ENOSYS.to_kernel());
        }
        RoceGroup::check(addr).kernel()?;
        let link = inner.resolution.dev_addr.as_ref().ok_or(ENODEV)?;
        let netdev = NetDevice::by_index(&endpoint.net, link.bound_dev_if).ok_or(ENODEV)?;
        let port = attachment.device.port(attachment.port_num).ok_or(ENODEV)?;
        let encapsulation = match port.default_gid_type() {
            GidType::RoceV2 => Encapsulation::Udp,
            GidType::Ib | GidType::RoceV1 => Encapsulation::Grh,
        };
        let own = GidAttr::find_by_port(
            &attachment.device.device,
            attachment.port_num,
            &endpoint.src(inner).to_gid(),
            port.default_gid_type(),
            Some(&netdev),
        );
        let group = RoceGroup::new(addr, encapsulation, member).kernel()?;
        let named = i32::try_from(addr.interface());
        if !named.is_ok_and(|named| [0, link.bound_dev_if].contains(&named)) {
            return Err(EINVAL);
        }
        Ok(RoceJoin {
            group,
            netdev,
            port_num: u8::try_from(attachment.port_num).unwrap_or(0),
            sgid_index: own.map(|own| u8::try_from(own.index()).unwrap_or(0)),
        })
    }

    /// Returns the event of having joined, with the Q_Key of the group, or an error event if the
    /// source GID has gone meanwhile.
    fn event(&self, qkey: u32) -> Event<'static> {
        let sgid_index = match self.sgid_index {
            Ok(index) => index,
            Err(error) => return Event::new(CmEvent::MulticastError, error.to_errno()),
        };
        let ah_attr = UverbsAhAttr {
            grh: UverbsGlobalRoute {
                dgid: self.group.mgid.0,
                sgid_index,
                hop_limit: self.group.hop_limit,
                ..FromZeros::new_zeroed()
            },
            is_global: 1,
            port_num: self.port_num,
            ..FromZeros::new_zeroed()
        };
        joined(ah_attr, qkey)
    }
}

/// The receiver of the subnet administrator's answers about a membership.
struct Joining {
    endpoint: EndpointRef,
    number: u64,
}

impl JoinDone for Joining {
    fn join_done(self: Arc<Self>, result: Result<McMember>) {
        self.endpoint.group_answered(self.number, result);
    }

    fn group_lost(self: Arc<Self>, error: Error) {
        self.endpoint.group_answered(self.number, Err(error));
    }
}

impl Endpoint {
    /// Joins the group of `addr`, with the number `number`, which no other membership has. Returns
    /// the outcome, to be reported by [`Endpoint::report_group`].
    ///
    /// Takes the lock of all network interfaces (RTNL).
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` without a device, in the wrong state, or if the endpoint is not for datagrams; on
    ///   RoCE also for a wildcard, for a group of another link, or if the MTU of the interface is
    ///   too small;
    /// - `ENODEV` if there is no interface, if it does not have the protocol of the group, or if
    ///   the endpoint is dead;
    /// - `ENOTSUPP` on RoCE v2 for what is no group of IPv4 or IPv6;
    /// - `EADDRNOTAVAIL` on InfiniBand if the interface is down;
    /// - `ENOMEM` if there is no memory.
    pub(crate) fn join_group(
        self: &EndpointRef,
        number: u64,
        addr: &SockAddr,
        member: Member,
    ) -> Result<Joined> {
        let is_ib = {
            let inner = self.inner.lock();
            let attachment = inner.device.as_ref().ok_or(EINVAL)?;
            let is_ready = matches!(inner.state(), State::AddrBound | State::AddrResolved);
            if !is_ready || self.qp_type != QpType::UD {
                return Err(EINVAL);
            }
            attachment.is_ib()
        };
        if is_ib {
            self.join_ib_group(number, addr, member)
        } else {
            self.join_roce_group(number, addr, member)
        }
    }

    fn join_roce_group(&self, number: u64, addr: &SockAddr, member: Member) -> Result<Joined> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let join = RoceJoin::new(self, &self.inner.lock(), addr, member)?;
        let membership = match join.group.ip_group {
            Some(group) => Some(IpMembership::join(&join.netdev, group)?),
            None => None,
        };
        roce_path_mtu(join.netdev.mtu()).ok_or(EINVAL)?;
        let node = reservation.into_node(
            number,
            Group::Roce {
                _interface: membership,
            },
        );

        // On failure, the lock is released before `node` is dropped, in reverse order of
        // declaration.
        let mut inner = self.inner.lock();
        if inner.is_dead() {
            return Err(ENODEV);
        }
        inner.groups.insert(node);
        if inner.qp.qkey == Qkey::unknown() {
            // If the port space has no default Q_Key, the groups are reported with 0.
            let _ = inner.qp.qkey.take_default(self.ps);
        }
        Ok(Joined::Member(join.event(inner.qp.qkey.value())))
    }

    /// Asks the subnet administrator for a membership.
    fn join_ib_group(
        self: &EndpointRef,
        number: u64,
        addr: &SockAddr,
        member: Member,
    ) -> Result<Joined> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let joining = Joining {
            endpoint: self.clone(),
            number,
        };
        let joining = Arc::new(joining, GFP_KERNEL_ACCOUNT)?;
        let group = Group::InfiniBand {
            membership: None,
            early_answer: Some(GroupAnswer::None),
        };
        let node = reservation.into_node(number, group);

        let (request, device, port) = {
            let mut inner = self.inner.lock();
            if inner.is_dead() {
                return Err(ENODEV);
            }
            let attachment = inner.device.as_ref().ok_or(EINVAL)?;
            let (device, port) = (attachment.device.device.clone(), attachment.port_num);
            let link = inner.ipoib().copied().unwrap_or_default();
            let template = broadcast_group(&device, port, &link.broadcast_gid())?;
            if inner.qp.qkey == Qkey::unknown() {
                self.take_default_qkey(&mut inner)?;
            }
            let request = McRequest {
                mgid: link.group(self.ps, addr),
                port_gid: self.ends(&inner).0,
                pkey: inner.addr.pkey,
                qkey: inner.qp.qkey.value(),
                member,
                template,
                is_ipoib: self.ps == PortSpace::Ipoib,
            };
            // This comes before the request, as the answer may come at once.
            inner.groups.insert(node);
            (request, device, port)
        };
        let joined = self.globals.sa.join(&device, port, &request, joining);
        drop(device);
        let joined = match joined {
            Ok(joined) => joined,
            Err(error) => {
                self.leave_group(number);
                return Err(error);
            }
        };
        let mut inner = self.inner.lock();
        let unwanted = match inner.groups.get_mut(&number) {
            Some(Group::InfiniBand { membership, .. }) => membership.replace(joined),
            // The endpoint has died meanwhile.
            _ => Some(joined),
        };
        let is_dead = unwanted.is_some();
        drop(inner);
        drop(unwanted);
        if is_dead {
            return Err(ENODEV);
        }
        Ok(Joined::Pending)
    }

    /// Sets the default Q_Key of the port space. For IP over InfiniBand it is the Q_Key of the
    /// interface's broadcast group.
    ///
    /// Fails with `ENODEV` if the port space has no default Q_Key, or with `EADDRNOTAVAIL` if the
    /// interface is down.
    pub(super) fn take_default_qkey(&self, inner: &mut Inner) -> Result {
        let at = inner.device.as_ref().filter(|at| at.is_ib());
        let (PortSpace::Ipoib, Some(at)) = (self.ps, at) else {
            return inner.qp.qkey.take_default(self.ps).kernel();
        };
        let mgid = inner.ipoib().copied().unwrap_or_default().broadcast_gid();
        let group = broadcast_group(&at.device.device, at.port_num, &mgid)?;
        inner.qp.qkey.take_group(group.qkey);
        Ok(())
    }

    /// Handles an answer of the subnet administrator about the membership `number`.
    fn group_answered(&self, number: u64, result: Result<McMember>) {
        let mut inner = self.inner.lock();
        match inner.groups.get_mut(&number) {
            Some(Group::InfiniBand {
                early_answer: Some(early_answer),
                ..
            }) => *early_answer = GroupAnswer::Received(result),
            Some(Group::InfiniBand {
                early_answer: None, ..
            }) => self.report_answer(&mut inner, number, result),
            _ => {}
        }
    }

    /// Reports an answer about a membership on InfiniBand to the consumer.
    fn report_answer(&self, inner: &mut Inner, number: u64, result: Result<McMember>) {
        let known = result.and_then(|member| {
            let at = inner.device.as_ref().ok_or(ENODEV)?;
            let (device, port) = (&at.device.device, at.port_num);
            inner.qp.qkey.take(member.qkey).kernel()?;
            let own = GidAttr::find_by_port(device, port, &member.port_gid, GidType::Ib, None)?;
            let index = u8::try_from(own.index()).unwrap_or(0);
            Ok(member.address_vector(u8::try_from(port).unwrap_or(0), index))
        });
        let event = match known {
            Ok(ah_attr) => joined(ah_attr, inner.qp.qkey.value()),
            Err(error) => {
                let status = error.to_errno();
                debug::log(&self.id_priv, Failure::MulticastFailed, status);
                Event::new(CmEvent::MulticastError, status)
            }
        };
        self.deliver_of_group(inner, number, &event);
    }

    /// Leaves a group, if the endpoint is still a member.
    ///
    /// Takes the lock of all network interfaces (RTNL).
    pub(crate) fn leave_group(&self, number: u64) {
        let node = self.inner.lock().groups.remove_node(&number);
        drop(node);
    }

    /// Reports the outcome of a join to the consumer, now or as soon as it is known, unless the
    /// endpoint has died meanwhile.
    pub(crate) fn report_group(&self, number: u64, joined: &Joined) {
        let mut inner = self.inner.lock();
        match joined {
            Joined::Member(event) => self.deliver_of_group(&inner, number, event),
            Joined::Pending => {
                let answer = match inner.groups.get_mut(&number) {
                    Some(Group::InfiniBand { early_answer, .. }) => mem::take(early_answer),
                    _ => None,
                };
                if let Some(GroupAnswer::Received(result)) = answer {
                    self.report_answer(&mut inner, number, result);
                }
            }
        }
    }
}
