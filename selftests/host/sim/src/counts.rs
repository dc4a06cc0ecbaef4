// SPDX-License-Identifier: GPL-2.0

//! The counters of simulations.

macro_rules! counts {
    ($($name:ident = $text:literal,)*) => {
        /// The counters of simulations.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $(pub $name: u64,)*
        }

        impl Counts {
            /// Adds up.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// All of them, with what each is of.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name),)*].into_iter()
            }
        }
    };
}

counts! {
    worlds = "simulations",
    connections = "connections",
    established = "  established",
    resolved = "  resolved for datagrams",
    rejected = "  rejected",
    unreachable = "  unreachable",
    disconnected = "  disconnected",
    half_open = "  half open when the network had healed",
    reused = "  queue pair reused in time wait",
    loaded = "  got another alternate path by a LAP",
    recognized = "  asked about a connection that the peer has lost",
    messages = "messages",
    lost = "  lost",
    late = "  late",
    duplicated = "  duplicated",
    corrupted = "  corrupt and not detected",
    restarts = "restarts",
    steps = "steps",
}
