// SPDX-License-Identifier: GPL-2.0

//! The message DREP: reply to a request to disconnect (IBTA 12.6.11).

use super::field::Field;

message! {
    /// A DREP: the answer to a DREQ (IBTA 12.6.11).
    pub struct Drep<'a> {
        /// Communication id of the sender.
        local_comm_id: u32 = Field<_, 0, 0, 32>,
        /// Communication id of the receiver.
        remote_comm_id: u32 = Field<_, 4, 0, 32>,
    }
    private data: 224
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_wire_drep)
)]
mod tests {
    use super::*;
    use crate::wire::testing::{check_layout, round_trip, FieldSpec, ZEROS};
    use crate::wire::Message;

    #[rustfmt::skip]
    const LAYOUT: &[FieldSpec<Drep<'static>>] = &[
        (|m| m.local_comm_id = !0, 0, 0, 32),
        (|m| m.remote_comm_id = !0, 4, 0, 32),
        (|m| m.private_data = &[!0; 224], 8, 0, 224 * 8),
    ];

    #[test]
    fn layout() {
        check_layout(Drep::decode(&ZEROS), LAYOUT, Message::Drep);
    }

    #[test]
    fn round_trips() {
        round_trip(Message::Drep(Drep {
            local_comm_id: 0xdead_beef,
            remote_comm_id: 0x0bad_cafe,
            private_data: &[0x5a; Drep::PRIVATE_DATA_LEN],
        }));
    }
}
