//! Virtual time, and the wiring that runs a stack in it.

use imbrex_core::disk::{Disk, Geometry};
use imbrex_core::engine::{Clock, Engine};
use imbrex_core::lifecycle::{Start, Uuid};
use imbrex_core::units::Instant;
use imbrex_drives::InstantDisk;

/// Jumps to whatever happens next.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now: Instant,
}

impl VirtualClock {
    /// The time it has jumped to.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// It is a later time at once.
    pub fn go_on_from(&mut self, now: Instant) {
        self.now = now;
    }
}

impl Clock for VirtualClock {
    fn wait(&mut self, until: Option<Instant>) -> Instant {
        // In virtual time nothing happens outside, so a stack that waits for nothing is a bug.
        let until = until.expect("the stack waits for something that will never happen");
        self.now = self.now.max(until);
        self.now
    }
}

/// Lets the layers of a stack come up over new disks, before the first run. What durable layers
/// write for that takes no time and is not counted: the drives were formatted before the
/// experiment began.
pub fn format(engine: &mut Engine) {
    let instant =
        |geometry: &Geometry| Box::new(InstantDisk::uncounted(geometry.clone())) as Box<dyn Disk>;
    let geometries = engine.disks.iter().map(|disk| disk.geometry());
    let instant = geometries.map(instant).collect();
    let disks = std::mem::replace(&mut engine.disks, instant);
    let mut clock = VirtualClock::default();
    engine
        .open(&mut clock, Start::Format(Uuid([0; 16])))
        .expect("nothing is refused over new disks that never fail");
    assert_eq!(clock.now, Instant::ZERO, "formatting took time");
    engine.disks = disks;
}
