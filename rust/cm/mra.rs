// SPDX-License-Identifier: GPL-2.0

//! The preparation of an MRA (IBTA 12.6.6), which is sent for repeated REQs or REPs.

use crate::{
    endpoint::{Endpoint, IdKind, Inner},
    ib::trace::{self, icm},
    kext::error::ResultExt,
};
use cmproto::cm::Connection;
use kernel::prelude::*;

impl Endpoint {
    /// Lets repeated REQs or REPs be answered with an MRA from now on, until the consumer has
    /// decided.
    pub(crate) fn prepare_mra(&self, inner: &mut Inner) -> Result {
        if self.kind != IdKind::IbCm {
            trace::cma::cm_prepare_mra(&self.id_priv, inner.tos());
        }
        let conn = inner.exchange.conn_mut().ok_or(EINVAL)?;
        let prepared = conn.machine.prepare_mra(Connection::SERVICE_TIMEOUT);
        conn.before = conn.machine.state();
        if prepared.is_err() {
            icm::icm_prepare_mra_unknown_err(&self.icm_id(conn));
        }
        prepared.kernel()?;
        self.report_state(inner);
        Ok(())
    }
}
