// SPDX-License-Identifier: GPL-2.0

//! Binding of an endpoint to a local address.

use crate::{
    device::source::{Source, SourceLink},
    endpoint::{Attachment, Endpoint, EndpointRef, Inner},
    ib::{addr, dev_addr::DevAddr, device_filter::DeviceFilter, interface::Interface},
    kext::{
        cred::{self, Capability},
        error::{ResultExt, ToKernel},
        netdev::NetDevice,
        users::User,
    },
};
use cmproto::{
    addr::SockAddr,
    bind::PortOwner,
    cm::Tunable,
    cma::{State, Trigger},
    errno::Errno,
    reuseport::PortGroup,
    service_id::{self, PortSpace},
};
use kernel::prelude::*;

/// Returns the index of the interface that the scope of an address names; 0 if it names none.
pub(super) fn interface_of(addr: &SockAddr) -> Result<i32> {
    i32::try_from(addr.interface()).map_err(|_| ENODEV)
}

impl Endpoint {
    /// Finds the device of `devices` that has the local address `addr`, and the interface that has
    /// the address. A native address has no interface.
    fn find_source(
        &self,
        devices: DeviceFilter,
        addr: &SockAddr,
        bound_if: i32,
    ) -> Result<(Attachment, Option<DevAddr>)> {
        if let SockAddr::Ib { gid, .. } = addr {
            let source = Source {
                addr,
                net: &self.net,
                interface: None,
                link: SourceLink::InfiniBand(*gid),
            };
            return Ok((self.globals.devices.by_source(devices, &source)?, None));
        }
        let link = addr::translate_ip(&self.net, addr, bound_if)?;
        let attachment = self.attachment_at(devices, addr, &link)?;
        Ok((attachment, Some(link)))
    }

    /// Finds the device of `devices` that has the local address `addr`, on the interface that
    /// `link` describes.
    pub(super) fn attachment_at(
        &self,
        devices: DeviceFilter,
        addr: &SockAddr,
        link: &DevAddr,
    ) -> Result<Attachment> {
        let ipoib = link.ipoib();
        if self.ps == PortSpace::Ipoib && ipoib.is_none() {
            return Err(EINVAL);
        }
        let interface = NetDevice::by_index(&self.net, link.bound_dev_if).ok_or(ENODEV)?;
        let source = Source {
            addr,
            net: &self.net,
            interface: Some(&interface),
            link: match ipoib {
                Some(ipoib) => SourceLink::InfiniBand(ipoib.own_gid()),
                None => SourceLink::Other,
            },
        };
        self.globals.devices.by_source(devices, &source)
    }

    /// Returns the group of listeners that the endpoint is in if it is bound at `attachment`, or to
    /// no device: it is to share its port, or does not say so and the device's port does.
    fn port_group(&self, inner: &Inner, attachment: Option<&Attachment>) -> Option<PortGroup> {
        let port = attachment.and_then(Attachment::port);
        let shares = inner.tuned_at(Tunable::ReusePort, port.map(|port| &**port)) == 1;
        let user = self.user().map(|user| User::number(user));
        shares.then(|| PortGroup::new(user, self.ps, self.qp_type))
    }

    /// Binds the endpoint to `addr`.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EAFNOSUPPORT` for an unspecified address;
    /// - `EINVAL` if the endpoint is bound already, or for a link-local address without a scope;
    /// - `EADDRNOTAVAIL`, `EADDRINUSE` or `EACCES` for the address or port;
    /// - `ENODEV` or `EPROTONOSUPPORT` if no device or port space fits.
    pub(crate) fn bind(self: &EndpointRef, addr: &SockAddr) -> Result {
        self.bind_to(&mut self.inner.lock(), addr, None)
    }

    /// Binds the endpoint to `addr`. If this is done to resolve the address `dst`, that is stored,
    /// too.
    pub(super) fn bind_to(
        self: &EndpointRef,
        inner: &mut Inner,
        addr: &SockAddr,
        dst: Option<&SockAddr>,
    ) -> Result {
        if addr.is_unspec() {
            return Err(Errno::EAFNOSUPPORT.to_kernel());
        }
        if inner.state() != State::Idle {
            return Err(EINVAL);
        }
        let mut bound_if = 0;
        if addr.is_link_local_v6() {
            bound_if = interface_of(addr)?;
            if bound_if == 0 {
                return Err(EINVAL);
            }
        }
        let source = if addr.is_any_or_loopback() {
            None
        } else {
            Some(self.find_source(self.device_filter(inner), addr, bound_if)?)
        };
        let afonly = inner.options.afonly.unwrap_or_else(|| match addr {
            SockAddr::V4 { .. } => true,
            SockAddr::V6 { .. } => self.net.bindv6only(),
            _ => false,
        });
        let (ps, addr) = service_id::select_port_space(self.ps, addr).kernel()?;
        let owner = PortOwner {
            addr,
            dst: dst.copied().unwrap_or(SockAddr::Unspec),
            reuseaddr: inner.options.reuseaddr,
            afonly,
            group: self.port_group(inner, source.as_ref().map(|(attachment, _)| attachment)),
        };
        let (claim, port) = self.globals.port_spaces.claim(
            &self.globals.slabs.ports,
            &self.net,
            ps,
            &owner,
            self.number,
            || cred::capable(Capability::NET_BIND_SERVICE),
        )?;
        let addr = addr.with_port(port);
        let before = self.dst(inner);
        let dst = dst.filter(|dst| dst.family() == addr.family());
        // The addresses have to be right from the moment that netlink reports the endpoint at a
        // device.
        self.set_addresses(inner, &addr, dst.unwrap_or(&before));
        if let Some((attachment, link)) = source {
            if let Err(error) = self.attach(inner, attachment) {
                self.set_addresses(inner, &SockAddr::Unspec, &before);
                return Err(error);
            }
            inner.addr.pkey = match (&addr, &link) {
                (SockAddr::Ib { pkey, .. }, _) => *pkey,
                (_, Some(link)) => link.pkey(),
                (_, None) => 0,
            };
            if let Some(link) = &link {
                bound_if = link.bound_dev_if;
                inner.interface = Interface::of_link(link);
            }
            inner.resolution.dev_addr = link;
        }
        inner.addr.bound_if = bound_if;
        inner.addr.afonly = afonly;
        inner.addr.port_group = owner.group;
        inner.addr.port = Some(claim);
        self.step(inner, Trigger::Bind)
    }
}
