// SPDX-License-Identifier: GPL-2.0

//! Listening for connection requests.

use super::listeners::Listener;
use crate::endpoint::{Endpoint, Inner};
use cmproto::{addr::SockAddr, cma::State, service_id::ServiceId};
use kernel::{prelude::*, sync::Arc};

impl Endpoint {
    /// Starts to listen.
    ///
    /// An endpoint without an address is bound to the IPv4 wildcard and an ephemeral port. Fails
    /// with `EINVAL` in any other state than bound or new, with the errors of [`Endpoint::bind`],
    /// and if the address is shared with others; nothing has changed then, except that the endpoint
    /// may have been bound.
    pub(crate) fn listen(self: &Arc<Self>) -> Result {
        let mut inner = self.inner.lock();
        if inner.state != State::AddrBound {
            let any = SockAddr::V4 {
                addr: [0; 4],
                port: 0,
            };
            self.bind_to(&mut inner, &any, None)?;
        }
        self.listen_locked(&mut inner)?;
        let is_wildcard = inner.device.is_none();
        drop(inner);
        if is_wildcard {
            self.core.show_listener(self);
        }
        Ok(())
    }

    fn listen_locked(self: &Arc<Self>, inner: &mut Inner) -> Result {
        if let Some(port) = &inner.port {
            // A listener shares its address with nobody.
            self.core.ports.make_exclusive(port)?;
        }
        inner.options.reuseaddr = false;
        let listener = Listener {
            endpoint: self.clone(),
            addr: inner.src,
            afonly: inner.afonly,
            bound_if: inner.bound_if,
            device: inner
                .device
                .as_ref()
                .map(|attachment| attachment.device.device.index()),
        };
        let service_id = ServiceId::of_address(self.ps, &inner.src);
        inner.listening = Some(self.core.listeners.add(service_id, listener)?);
        self.set_state(inner, State::Listen);
        Ok(())
    }
}
