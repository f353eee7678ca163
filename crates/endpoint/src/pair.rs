//! Two devices on a wire in memory, for the tests of this crate's rooms.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::completion::CompletionQueue;
use crate::device::{Backend, Device, DeviceConfig, Progress, ProtectionDomain};
use crate::io::MemoryWire;
use crate::queue_pair::{QueuePair, QueuePairBuilder};

/// One of them.
pub(crate) struct End {
    pub(crate) device: Device,
    pub(crate) pd: ProtectionDomain,
    pub(crate) cq: CompletionQueue,
    pub(crate) qp: QueuePair,
}

/// Two devices that go on by `progress`, with a queue pair each, connected, as `build` makes them.
pub(crate) fn pair(
    wire: &MemoryWire,
    progress: Progress,
    build: impl Fn(QueuePairBuilder) -> QueuePairBuilder,
) -> [End; 2] {
    let config = DeviceConfig { progress, ..DeviceConfig::default() };
    pair_with(wire, &config, build)
}

/// The same with this configuration but for the backend.
pub(crate) fn pair_with(
    wire: &MemoryWire,
    config: &DeviceConfig,
    build: impl Fn(QueuePairBuilder) -> QueuePairBuilder,
) -> [End; 2] {
    let ends = [1, 2].map(|last| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..config.clone() };
        let device = Device::open_with([10, 0, 0, last].into(), config).unwrap();
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = build(pd.create_qp(&cq, &cq)).build().unwrap();
        End { device, pd, cq, qp }
    });
    let [near, far] = &ends;
    near.qp.connect(far.qp.info()).unwrap();
    far.qp.connect(near.qp.info()).unwrap();
    ends
}
