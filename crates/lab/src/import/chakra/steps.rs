//! What a rank does, node by node, and what of it waits for what.

use super::groups;
use super::trace::{Damage, Node, NodeType, Nodes, Value};
use crate::traffic::collective::Operation;
use crate::traffic::goal::MESSAGE_MAX;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io::BufRead;

/// How fast a rank computes, for nodes that say what they do and not for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machine {
    /// Operations in a second, in units of 10¹² (`peak-perf` of ASTRA-sim's system files).
    pub peak_perf: Option<f64>,
    /// Octets of memory in a second, in units of 10⁹ (`local-mem-bw` there).
    pub local_mem_bw: Option<f64>,
}

/// Which CPU of its rank does it. As in ASTRA-sim a rank computes one thing at a time, and its processor another beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    /// What the accelerator computes.
    Compute = 0,
    /// What the host's processor does for it (`is_cpu_op`).
    Host = 1,
    /// Messages, which keep it busy with nothing but `overhead`.
    Messages = 2,
    /// What is copied from and to memory: an engine of its own, while ASTRA-sim has it wait for messages.
    Memory = 3,
    /// What takes no time, and waits for no CPU that is busy.
    Marks = 4,
}

/// What a node comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Nothing but wait.
    Nothing,
    /// Keeps a CPU busy.
    Calc { nanos: u64, cpu: Cpu },
    /// Sends a message.
    Send { to: u32, tag: u32, size: u64 },
    /// Waits for one.
    Receive { from: u32, tag: u32, size: u64 },
    /// Takes part in a collective of the process group of this name, or of all ranks where that is empty. `size` counts as in the node.
    Collective { operation: Operation, size: u64, group: Box<str> },
}

/// A node as part of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    /// The places of the steps that it waits for.
    pub(super) needs: Vec<u32>,
    pub(super) does: Does,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// In the order of their numbers, in which ASTRA-sim begins those that may begin at one moment.
    pub(super) steps: Vec<Step>,
    /// Their places so that each comes behind all that it waits for, and before those of higher numbers where it may.
    pub(super) order: Vec<u32>,
    /// The process groups that the trace lists.
    pub(super) groups: BTreeMap<String, Vec<u32>>,
}

/// Why a trace makes no schedule.
#[derive(Debug)]
pub(super) enum StepError {
    /// It is no trace.
    Damage(Damage),
    /// A node cannot be done.
    Node { id: u64, name: Box<str>, what: String },
}

impl std::fmt::Display for StepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damage(damage) => damage.fmt(f),
            Self::Node { id, name, what } => write!(f, "node {id}, `{}`: {what}", name.escape_debug()),
        }
    }
}

/// So many ns a node takes at most, eleven days: sums of them are times still.
const NANOS_MAX: u64 = 1_000_000_000_000_000;
/// The most octets of a collective, whose parts are counted in 64 bits.
const COLLECTIVE_MAX: u64 = 1 << 40;

impl Steps {
    /// Reads the trace of `rank`, one of `ranks`.
    pub(super) fn read(
        from: impl BufRead,
        rank: u32,
        ranks: u32,
        machine: &Machine,
    ) -> Result<Self, StepError> {
        let mut nodes = Nodes::new(from).map_err(StepError::Damage)?;
        let mut read = Vec::new();
        let mut groups = BTreeMap::new();
        while let Some(node) = nodes.next_node().map_err(StepError::Damage)? {
            let reader = Reader { node: &node, rank, ranks, machine };
            let does = reader.does().map_err(|what| failed(&node, what))?;
            if let Some(inputs) = node.inputs.as_ref().filter(|_| reader.kind() == Ok(NodeType::Metadata)) {
                groups::of_inputs(&inputs.values, &mut groups);
            }
            let Node { id, name, control, data, .. } = node;
            read.push((Step { id, name: name.into(), needs: Vec::new(), does }, control, data));
        }
        read.sort_by_key(|(step, ..)| step.id);
        let places: HashMap<u64, u32> =
            (0..).zip(&read).map(|(place, (step, ..))| (step.id, place)).collect();
        let mut steps = Vec::with_capacity(read.len());
        for (mut step, control, data) in read {
            let step_failed = |what| StepError::Node { id: step.id, name: step.name.clone(), what };
            if steps.last().is_some_and(|before: &Step| before.id == step.id) {
                return Err(step_failed("there are two nodes of this number; give each its own".into()));
            }
            let mut needs = Vec::with_capacity(control.len() + data.len());
            for id in control.into_iter().chain(data) {
                needs.push(*places.get(&id).ok_or_else(|| {
                    step_failed(format!(
                        "it waits for node {id}, which is not there; add it, or leave it out"
                    ))
                })?);
            }
            needs.sort_unstable();
            needs.dedup();
            step.needs = needs;
            steps.push(step);
        }
        let order = order(&steps)?;
        Ok(Self { steps, order, groups })
    }
}

fn failed(node: &Node, what: String) -> StepError {
    StepError::Node { id: node.id, name: node.name.clone().into(), what }
}

/// An order in which each step comes behind those that it waits for.
fn order(steps: &[Step]) -> Result<Vec<u32>, StepError> {
    let mut waiting = vec![Vec::new(); steps.len()];
    let mut missing = Vec::with_capacity(steps.len());
    let mut open = BinaryHeap::new();
    for (place, step) in (0u32..).zip(steps) {
        for &needed in &step.needs {
            waiting[needed as usize].push(place);
        }
        missing.push(step.needs.len());
        if step.needs.is_empty() {
            open.push(Reverse(place));
        }
    }
    let mut order = Vec::with_capacity(steps.len());
    while let Some(Reverse(place)) = open.pop() {
        order.push(place);
        for &other in &waiting[place as usize] {
            missing[other as usize] -= 1;
            if missing[other as usize] == 0 {
                open.push(Reverse(other));
            }
        }
    }
    match steps.iter().zip(missing).find(|(_, missing)| *missing > 0) {
        None => Ok(order),
        Some((step, _)) => {
            let what = "it waits for itself, by way of others or not; leave a dependency out".into();
            Err(StepError::Node { id: step.id, name: step.name.clone(), what })
        }
    }
}

/// Tells what a node comes to.
struct Reader<'a> {
    node: &'a Node,
    rank: u32,
    ranks: u32,
    machine: &'a Machine,
}

impl Reader<'_> {
    fn kind(&self) -> Result<NodeType, prost::UnknownEnumValue> {
        NodeType::try_from(self.node.kind)
    }

    fn does(&self) -> Result<Does, String> {
        let kind = self.kind().map_err(|kind| {
            format!(
                "its type is {kind}, which is not known; leave it out, or make it a COMP_NODE",
                kind = kind.0
            )
        })?;
        Ok(match kind {
            NodeType::Invalid | NodeType::Metadata => Does::Nothing,
            NodeType::Compute if self.is_host_s()? => Does::Calc { nanos: self.measured()?, cpu: Cpu::Host },
            NodeType::Compute => Does::Calc { nanos: self.computed()?, cpu: Cpu::Compute },
            NodeType::MemoryLoad | NodeType::MemoryStore => {
                let nanos = match self.measured()? {
                    0 => self.for_octets(self.needed("tensor_size")?)?,
                    nanos => nanos,
                };
                Does::Calc { nanos: within(nanos)?, cpu: Cpu::Memory }
            }
            NodeType::Send => {
                self.must_be_rank("comm_src")?;
                Does::Send { to: self.peer("comm_dst")?, tag: self.tag()?, size: self.message()? }
            }
            NodeType::Receive => {
                self.must_be_rank("comm_dst")?;
                Does::Receive { from: self.peer("comm_src")?, tag: self.tag()?, size: self.message()? }
            }
            NodeType::Collective => self.collective()?,
            NodeType::Storage | NodeType::Batch | NodeType::Checkpoint => {
                return Err(format!(
                    "a {kind:?} node, which no schedule has; leave it out, or make it a COMP_NODE of its duration"
                ));
            }
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.node.attribute(name) else { return Ok(None) };
        let number =
            value.number().ok_or_else(|| format!("its `{name}` is no number from 0 on; correct it"))?;
        Ok(Some(number))
    }

    fn needed(&self, name: &str) -> Result<u64, String> {
        self.number(name)?.ok_or_else(|| format!("it has no `{name}`; add that attribute"))
    }

    fn is_host_s(&self) -> Result<bool, String> {
        Ok(self.number("is_cpu_op")?.is_some_and(|is| is != 0))
    }

    /// The time that the trace has for it, in ns; 0 where it has none.
    fn measured(&self) -> Result<u64, String> {
        within(self.node.duration_us.saturating_mul(1000))
    }

    /// That, or what `num_ops` and `tensor_size` take at least of a roofline: whichever of computing and memory is slower.
    fn computed(&self) -> Result<u64, String> {
        let measured = self.measured()?;
        if measured > 0 {
            return Ok(measured);
        }
        let operations = self.number("num_ops")?.unwrap_or(0);
        let computing = match (operations, self.machine.peak_perf) {
            (0, _) => 0,
            (_, Some(peak)) => floor(operations as f64 / peak * 1e-3),
            (_, None) => {
                return Err(
                    "it says how many operations it takes (`num_ops`), and not how long; give --peak-perf"
                        .into(),
                );
            }
        };
        let memory = match self.number("tensor_size")? {
            // What says nothing of operations takes no time, as in traces of PyTorch, whose times are cut off to us.
            Some(octets) if operations > 0 => self.for_octets(octets)?,
            _ => 0,
        };
        within(computing.max(memory))
    }

    fn for_octets(&self, octets: u64) -> Result<u64, String> {
        match (octets, self.machine.local_mem_bw) {
            (0, _) => Ok(0),
            (_, Some(bandwidth)) => Ok(floor(octets as f64 / bandwidth)),
            (_, None) => Err(
                "it says how much memory it goes through (`tensor_size`), and not how long; give --local-mem-bw"
                    .into(),
            ),
        }
    }

    /// What is said of its own rank must be so.
    fn must_be_rank(&self, name: &str) -> Result<(), String> {
        match self.number(name)? {
            Some(other) if other != u64::from(self.rank) => Err(format!(
                "its `{name}` is {other}, and it stands in the trace of rank {}; put it into that of rank {other}",
                self.rank
            )),
            _ => Ok(()),
        }
    }

    fn peer(&self, name: &str) -> Result<u32, String> {
        let peer = self.needed(name)?;
        u32::try_from(peer).ok().filter(|peer| *peer < self.ranks).ok_or_else(|| {
            format!("its `{name}` is {peer}, and there are traces of {} ranks; add that one's", self.ranks)
        })
    }

    fn tag(&self) -> Result<u32, String> {
        let tag = self.number("comm_tag")?.unwrap_or(0);
        u32::try_from(tag)
            .map_err(|_| format!("its `comm_tag` is {tag}, and tags have 32 bits; give it another"))
    }

    fn message(&self) -> Result<u64, String> {
        let size = self.needed("comm_size")?;
        if size > MESSAGE_MAX {
            return Err(format!("a message of {size} octets, and 1GiB is the most; send several"));
        }
        Ok(size)
    }

    fn collective(&self) -> Result<Does, String> {
        if let Some(Value::Bools(dimensions)) = self.node.attribute("involved_dim")
            && dimensions.values.contains(&false)
        {
            return Err(
                "its `involved_dim` leaves ranks out by their place in a topology; name a process group in \
                        `pg_name`, and list its ranks with --groups"
                    .into(),
            );
        }
        let kind = self.needed("comm_type")?;
        let (operation, size) = match kind {
            0 => (Operation::AllReduce, self.needed("comm_size")?),
            1 => (Operation::Reduce, self.needed("comm_size")?),
            2 => (Operation::AllGather, self.needed("comm_size")?),
            3 => (Operation::Gather, self.needed("comm_size")?),
            4 => (Operation::Scatter, self.needed("comm_size")?),
            5 => (Operation::Broadcast, self.needed("comm_size")?),
            6 => (Operation::AllToAll, self.needed("comm_size")?),
            7 | 8 => (Operation::ReduceScatter, self.needed("comm_size")?),
            // NCCL has none, and PyTorch reduces a number instead.
            9 => (Operation::AllReduce, 0),
            _ => {
                return Err(format!(
                    "its `comm_type` is {kind}, which is not known; write its messages as COMM_SEND_NODE and COMM_RECV_NODE"
                ));
            }
        };
        if size > COLLECTIVE_MAX {
            return Err(format!("its `comm_size` is {size}, and 1TiB is the most; split it up"));
        }
        let group = match self.node.attribute("pg_name") {
            None => String::new(),
            Some(value) => value.name().ok_or("its `pg_name` is no name; give it the group's")?,
        };
        Ok(Does::Collective { operation, size, group: group.into() })
    }
}

fn within(nanos: u64) -> Result<u64, String> {
    if nanos > NANOS_MAX {
        return Err(
            "it takes more than eleven days; correct its duration, or --peak-perf and --local-mem-bw".into(),
        );
    }
    Ok(nanos)
}

/// Whole ns, as ASTRA-sim counts them. What is beyond all bounds stays so.
fn floor(nanos: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "meant, and conversions saturate"
    )]
    {
        nanos as u64
    }
}
