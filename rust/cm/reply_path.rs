// SPDX-License-Identifier: GPL-2.0

//! The path by which the sender of a message is answered.

use crate::{
    device::port::Port,
    endpoint::CmDevice,
    globals::Globals,
    ib::{
        addr,
        ah::{Ah, AhSpec},
        dev_addr::DevAddr,
        device::DeviceRef,
        gid::GidAttr,
        mad::{Agent, ReceivedMad},
    },
    kext::users::UserRef,
    table::resolve_budget::{ResolvePermit, ResolvePurpose},
};
use cmproto::{
    path::{FromLink, Path},
    ucma::query::Protocol,
    wire::Req,
};
use kernel::{prelude::*, sync::Arc};

/// The path by which the sender of a message is answered.
pub(super) struct ReplyPath {
    device: DeviceRef,
    /// The port that has received the message.
    port_num: u32,
    /// The GID of this host that the message was sent to. `None` on InfiniBand if there was no GRH.
    pub(super) local: Option<GidAttr>,
    /// Link-layer information of the message, on InfiniBand only.
    pub(super) link: Option<FromLink>,
    /// The path to the sender, except for the hop limit.
    pub(super) back: Path,
    /// P_Key index of the message.
    pub(super) pkey_index: u16,
}

impl ReplyPath {
    /// Returns the path to the sender of `mad`.
    ///
    /// Fails if the message was sent to a GID that the device does not have.
    pub(super) fn of(port: &Port, device: &CmDevice, mad: &ReceivedMad) -> Result<Self> {
        let source = mad.source();
        let is_roce = port.protocol == Protocol::Roce;
        let link = (!is_roce).then(|| source.link(device.device.has_opa_lids(port.num)));
        let local = if is_roce || source.has_grh {
            Some(GidAttr::for_received(&device.device, source)?)
        } else {
            None
        };
        Ok(ReplyPath {
            device: device.device.clone(),
            port_num: port.num,
            local,
            link,
            back: Path {
                sgid: source.dgid,
                dgid: source.sgid,
                flow_label: source.flow_label,
                traffic_class: source.traffic_class,
                sl: source.sl,
                slid: link.map_or(0, |link| u32::from(link.path_bits)),
                dlid: link.map_or(0, |link| link.lid),
                ..Path::default()
            },
            pkey_index: source.pkey_index,
        })
    }

    /// Returns the path that a REQ from there has.
    pub(super) fn request_path(&self, req: &Req<'_>) -> Path {
        let Some(link) = &self.link else {
            return Path::from_req(req);
        };
        let path = Path::from_req_over(req, link);
        if link.is_opa {
            return self.with_port_gid(path);
        }
        path
    }

    /// Returns `path`, which a peer has named at a port of Omni-Path, with the GID of the port in
    /// place of one that is made from its LID. No interface has such a GID.
    #[cold]
    fn with_port_gid(&self, path: Path) -> Path {
        let gid = if path.sgid.is_opa() {
            self.device.query_gid(self.port_num, 0).ok()
        } else {
            None
        };
        Path {
            sgid: gid.unwrap_or(path.sgid),
            ..path
        }
    }

    /// Sets the path for answers to `path`, which the sender has named. It is used on InfiniBand
    /// only.
    pub(super) fn answer_by(&mut self, path: &Path) {
        if self.link.is_some() {
            self.back = *path;
        }
    }

    /// Creates an address handle for the sender, which was found at `link`. It is charged to `user`
    /// if it is for a program.
    pub(super) fn address(
        &self,
        agent: &Arc<Agent>,
        link: &DevAddr,
        user: Option<&UserRef>,
    ) -> Result<Ah> {
        let path = Path {
            hop_limit: link.hop_limit,
            ..self.back
        };
        let dmac = self.link.is_none().then(|| link.dst_mac());
        let port = agent.port_num();
        let spec = AhSpec::along(&path, &self.device, port, self.local.as_ref(), dmac);
        Ah::new(agent, &self.device, &spec, user)
    }
}

/// The neighbour through which a sender is reached, as far as it is known without waiting.
pub(super) enum Neighbour {
    /// The link-layer address is known.
    Resolved(DevAddr),
    /// The link-layer address has to be resolved, and the limits allow it.
    Unresolved(ResolvePermit),
}

impl ReplyPath {
    /// Looks up the address of the sender. Allocates nothing that lasts.
    ///
    /// Fails with `EBUSY` if the address has to be resolved and a limit is reached, and with other
    /// errors if there is no route to the sender.
    pub(super) fn neighbour(
        &self,
        globals: &Arc<Globals>,
        purpose: ResolvePurpose,
    ) -> Result<Neighbour> {
        if let Some(link) = &self.link {
            let hop_limit = if link.has_grh { u8::MAX } else { 0 };
            return Ok(Neighbour::Resolved(DevAddr::by_lid(hop_limit)));
        }
        let local = self.local.as_ref().ok_or(EINVAL)?;
        match addr::lookup_gid(local, &self.back.dgid)? {
            Some(found) => Ok(Neighbour::Resolved(found)),
            None => {
                let (budget, sender) = (&globals.resolve_budget, &self.back.dgid);
                ResolvePermit::take(budget, purpose, sender, globals.now())
                    .map(Neighbour::Unresolved)
                    .ok_or(EBUSY)
            }
        }
    }
}
