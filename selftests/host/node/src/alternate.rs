// SPDX-License-Identifier: GPL-2.0

//! The paths of connections over InfiniBand, and their change by LAPs.

use cmproto::{
    cm::{AlternateEnd, AprStatus, ConnectParams, LapParams, Outgoing},
    errno::Errno,
    path::{FromLink, Path},
    wire::{Lap, Req},
};

use crate::{
    environment::{Arrived, Cause, Environment},
    node::{Node, ACK_DELAY},
    tables::EpId,
};

/// The LIDs of a node over InfiniBand, and of everybody else.
const LIDS: (u32, u32) = (1, 2);

/// The link that all messages come from.
const FROM: FromLink = FromLink {
    lid: LIDS.1,
    path_bits: 0,
    sl: 0,
    has_grh: false,
    is_opa: false,
};

/// The paths of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths {
    pub primary: Path,
    pub alternate: Option<Path>,
    /// The path that a LAP proposes.
    pub proposed: Option<Path>,
}

impl Paths {
    /// Returns the path that a message names.
    pub(crate) fn named_in(&self, message: Outgoing) -> Option<&Path> {
        match message {
            Outgoing::Lap => self.proposed.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn end_lap(&mut self, is_loaded: bool) {
        let proposed = self.proposed.take();
        if is_loaded {
            self.alternate = proposed;
        }
    }

    /// Returns the paths of a connection that this node asks for.
    pub(crate) fn of_own_req(params: &ConnectParams) -> Self {
        let primary = Path {
            sgid: params.primary.local_gid,
            dgid: params.primary.remote_gid,
            slid: LIDS.0,
            dlid: LIDS.1,
            pkey: params.pkey,
            mtu: params.path_mtu,
            ..Path::default()
        };
        Self {
            primary,
            ..Self::default()
        }
    }

    pub(crate) fn of_req(req: &Req<'_>) -> Self {
        Self {
            primary: Path::from_req_over(req, &FROM),
            ..Self::default()
        }
    }
}

impl<E: Environment> Node<E> {
    /// Checks the path in a LAP to an endpoint.
    fn check_lap(&self, paths: &Paths, lap: &Lap<'_>) -> Result<Path, AprStatus> {
        let path = Path::alternate(&lap.path(), &paths.primary, &FROM);
        paths.primary.check_new_alternate(&path)?;
        let end = AlternateEnd {
            can_migrate: self.can_migrate,
            has_gid: path.sgid == self.gid,
            has_lid: path.begins_at(LIDS.0, 0),
            has_pkey: true,
        };
        end.check(&path)?;
        Ok(path)
    }

    /// Handles a LAP of the peer of `ep`, over InfiniBand.
    pub(crate) fn receive_lap(&mut self, ep: EpId, arrived: &Arrived<'_>, lap: &Lap<'_>) {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return;
        };
        let wanted = endpoint.machine.connection();
        let path = match wanted.is_some_and(|machine| machine.wants_lap(arrived.header, lap)) {
            true => self.check_lap(&endpoint.paths, lap),
            false => Err(AprStatus::Rejected),
        };
        let mut is_loaded = false;
        let _ = self.step(ep, &Cause::Message(arrived), |machine| {
            let machine = machine.connection_mut()?;
            let received = machine.receive_lap(arrived.header, lap, path.map(|_| ()));
            is_loaded = received.is_loaded;
            Ok(received.actions.into())
        });
        if let (true, Some(endpoint)) = (is_loaded, self.endpoints.get_mut(&ep)) {
            endpoint.paths.alternate = path.ok();
        }
    }

    /// Proposes to the peer of `ep` an alternate path to `dlid`.
    ///
    /// # Errors
    ///
    /// `EINVAL` without a connection over InfiniBand or if it is the way that is used; those of the
    /// state machine.
    pub fn load_alternate(&mut self, ep: EpId, dlid: u16) -> Result<(), Errno> {
        let is_ib = self.is_ib;
        let endpoint = self.endpoints.get_mut(&ep).filter(|_| is_ib);
        let endpoint = endpoint.ok_or(Errno::EINVAL)?;
        let primary = endpoint.paths.primary;
        let path = Path {
            dlid: dlid.into(),
            slid: LIDS.0,
            packet_life_time: 17,
            ..primary
        };
        let checked = primary.check_new_alternate(&path);
        checked.map_err(|_| Errno::EINVAL)?;
        let machine = endpoint.machine.connection_mut()?;
        if !machine.has_lap() {
            endpoint.paths.proposed = Some(path);
        }
        let params = LapParams {
            packet_life_time: path.packet_life_time,
            ca_ack_delay: ACK_DELAY,
            remote_cm_response_timeout: self.tuning.response_timeout().get(),
        };
        let now = self.now;
        self.step(ep, &Cause::Verb, |machine| {
            Ok(machine
                .connection_mut()?
                .load_alternate(params, now)?
                .into())
        })
    }
}
