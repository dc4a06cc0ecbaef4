// SPDX-License-Identifier: GPL-2.0

//! The device `fz0`, which comes and goes.

use std::process::{Command, Stdio};

/// The device, its address, and the interface below it.
pub struct Operator {
    device: bool,
    address: bool,
}

fn succeeds(program: &str, words: &str) -> bool {
    let mut command = Command::new(program);
    command.args(words.split(' ')).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Operator {
    /// Makes the interface and the device.
    pub fn new() -> Self {
        let _ = succeeds("ip", "link add fv0 type veth peer name fv1")
            && succeeds("ip", "link set fv0 up")
            && succeeds("ip", "link set fv1 up");
        let mut operator = Self {
            device: false,
            address: false,
        };
        operator.restore();
        operator
    }

    pub fn set_device(&mut self, there: bool) {
        if self.device != there {
            self.device = there;
            let done = if there {
                succeeds("rdma", "link add fz0 type rxe netdev fv0")
            } else {
                succeeds("rdma", "link del fz0")
            };
            assert!(done, "fz0");
        }
    }

    pub fn set_address(&mut self, there: bool) {
        if self.address != there {
            self.address = there;
            let verb = if there { "add" } else { "del" };
            let done = succeeds("ip", &format!("addr {verb} 10.0.2.1/24 dev fv0"));
            assert!(done, "10.0.2.1");
        }
    }

    /// Makes all as it was.
    pub fn restore(&mut self) {
        self.set_address(true);
        self.set_device(true);
    }
}
