// SPDX-License-Identifier: GPL-2.0

//! Steps of the state machines, and what they ask for.

use cmproto::{
    cm::{self, Outgoing},
    cma,
    errno::Errno,
    sidr,
    wire::{Attribute, Message, MAD_LEN},
};

use crate::{
    alternate::Paths,
    endpoint::{Actions, Machine},
    environment::{Cause, Environment},
    node::{Node, Plant},
    tables::EpId,
};

impl<E: Environment> Node<E> {
    /// Lets the state machine of `ep` take a step, and carries out what it asks for. An endpoint
    /// that was destroyed goes when its state machine is over.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such endpoint; those of the step.
    pub(crate) fn step(
        &mut self,
        ep: EpId,
        cause: &Cause<'_>,
        input: impl FnOnce(&mut Machine) -> Result<Actions, Errno>,
    ) -> Result<(), Errno> {
        let before = E::before(self, ep, cause);
        let endpoint = self.endpoints.get_mut(&ep).ok_or(Errno::ENOENT)?;
        let result = input(&mut endpoint.machine).map(|actions| self.execute(ep, actions, cause));
        E::after(self, ep, cause, before, result);
        let endpoint = self.endpoints.get(&ep);
        if endpoint.is_some_and(|own| own.is_destroyed && own.machine.is_closed()) {
            self.remove(ep);
        }
        result
    }

    fn execute(&mut self, ep: EpId, actions: Actions, cause: &Cause<'_>) {
        match actions {
            Actions::Connection(actions) => {
                actions.for_each(|action| self.execute_connection(ep, action, cause));
            }
            Actions::Resolution(actions) => {
                actions.for_each(|action| self.execute_resolution(ep, action, cause));
            }
        }
    }

    fn execute_connection(&mut self, ep: EpId, action: cm::Action, cause: &Cause<'_>) {
        match action {
            cm::Action::Send(outgoing) => self.transmit_of_connection(ep, outgoing),
            cm::Action::SendUnasked(outgoing) => match self.may_send_unasked(ep) {
                true => self.transmit_of_connection(ep, outgoing),
                false => E::withheld(self, ep),
            },
            cm::Action::Timer => self.set_timer(ep),
            cm::Action::ReleaseRemoteIds => self.release_remote_ids(ep),
            cm::Action::Deliver(event) => self.deliver(ep, event, cause),
            cm::Action::EndLap { is_loaded } => {
                let is_planted = self.plant == Some(Plant::TakeRefused);
                if let Some(endpoint) = self.endpoints.get_mut(&ep) {
                    endpoint.paths.end_lap(is_loaded || is_planted);
                }
            }
            cm::Action::Release | cm::Action::Count(_) => {}
        }
    }

    fn execute_resolution(&mut self, ep: EpId, action: sidr::Action, cause: &Cause<'_>) {
        match action {
            sidr::Action::Send(outgoing) => {
                self.transmit(ep, outgoing.attribute(), |machine, mad| {
                    machine.resolution()?.encode(outgoing, mad).ok()
                });
            }
            sidr::Action::Timer => self.set_timer(ep),
            sidr::Action::ReleaseRequest => self.release_sidr_request(ep),
            sidr::Action::Deliver(event) => self.deliver_resolved(ep, event, cause),
            sidr::Action::Release | sidr::Action::Count(_) => {}
        }
    }

    fn transmit_of_connection(&mut self, ep: EpId, outgoing: Outgoing) {
        let endpoint = self.endpoints.get(&ep);
        let paths = endpoint.map_or(Paths::default(), |own| own.paths);
        self.transmit(ep, outgoing.attribute(), |machine, mad| {
            let path = paths.named_in(outgoing);
            machine.connection()?.encode_along(outgoing, path, mad).ok()
        });
    }

    /// Returns whether the peer of `ep` may be sent a message that it has not asked for.
    fn may_send_unasked(&mut self, ep: EpId) -> bool {
        let Some(endpoint) = self.endpoints.get(&ep) else {
            return false;
        };
        let may = self.sources.may_send_unasked(&endpoint.peer, self.now);
        may || self.plant == Some(Plant::Unasked)
    }

    /// Sends what `encode` writes.
    fn transmit(
        &mut self,
        ep: EpId,
        kind: Attribute,
        encode: impl FnOnce(&Machine, &mut [u8; MAD_LEN]) -> Option<()>,
    ) {
        if let Some(endpoint) = self.endpoints.get(&ep) {
            let mut mad = [0; MAD_LEN];
            encode(&endpoint.machine, &mut mad).expect("the machine can write what it sends");
            let to = endpoint.peer;
            E::send(self, Some(ep), to, kind, &mad);
        }
    }

    fn set_timer(&mut self, ep: EpId) {
        let endpoint = self.endpoints.get(&ep);
        if let Some(deadline) = endpoint.and_then(|own| own.machine.deadline()) {
            self.env.timer(ep, deadline);
        }
    }

    fn release_remote_ids(&mut self, ep: EpId) {
        if self.plant == Some(Plant::KeepRemoteIds) {
            return;
        }
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        endpoint.is_confirmed = false;
        if let Some(ids) = endpoint.remote_ids.take() {
            self.tables.remote_ids.release(&ids, ep);
        }
    }

    fn release_sidr_request(&mut self, ep: EpId) {
        let endpoint = self.endpoints.get_mut(&ep);
        if let Some(request) = endpoint.and_then(|own| own.sidr_request.take()) {
            self.tables.sidr_requests.remove(&request);
        }
    }

    /// Turns an event of a connection into one of the RDMA CM.
    fn deliver(&mut self, ep: EpId, event: cm::Event, cause: &Cause<'_>) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let upcall = cma::upcall(endpoint.state, event, None);
        let trigger = upcall.as_ref().and_then(|upcall| upcall.trigger);
        if let Some(next) = trigger.and_then(|trigger| endpoint.state.next(trigger)) {
            endpoint.state = next;
        }
        if upcall.is_some() && event == cm::Event::RepReceived {
            self.prepare_mra(ep, cm::Connection::SERVICE_TIMEOUT);
        }
        E::deliver(self, ep, Some(event), upcall.as_ref(), cause);
    }

    /// Turns an event of a resolution into one of the RDMA CM.
    fn deliver_resolved(&mut self, ep: EpId, event: sidr::Event, cause: &Cause<'_>) {
        let Some(endpoint) = self.endpoints.get_mut(&ep) else {
            return;
        };
        let qkey = match (event, cause) {
            (sidr::Event::RepReceived { status }, Cause::Message(arrived))
                if status.is_success() =>
            {
                match arrived.message {
                    Message::SidrRep(rep) => endpoint.qkey.take(rep.qkey),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        };
        let upcall = cma::resolution_upcall(endpoint.state, event, qkey);
        E::deliver(self, ep, None, upcall.as_ref(), cause);
    }
}
