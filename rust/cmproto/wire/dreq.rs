// SPDX-License-Identifier: GPL-2.0

//! The message DREQ: request to disconnect (IBTA 12.6.10).

use super::field::Field;

message! {
    /// A DREQ: a request to disconnect (IBTA 12.6.10).
    pub struct Dreq<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
        /// QPN of the receiver, or its end-to-end context, 24 bits.
        remote_qpn_eecn: u32 = Field<_, 8, 0, 24>,
    }
    private data: 220
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_dreq)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Dreq<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.remote_qpn_eecn = !0, 8, 0, 24),
        (|m| m.private_data = &[!0; 220], 12, 0, 220 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(Dreq::decode(&ZEROS), LAYOUT, Message::Dreq);
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Dreq(Dreq {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            remote_qpn_eecn: 0x123456,
            private_data: &[0x5a; Dreq::PRIVATE_DATA_LEN],
        }));
    }
}
