//! The ports of a kind of node, and the key `below` that names the nodes behind them.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Nodes behind one port at most.
pub const PORT_NODES_MAX: usize = 64;

/// How many nodes a port takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// One.
    One,
    /// One or none.
    Optional,
    /// A list of one or more.
    Several,
}

/// A port of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortKey {
    /// Its name in the table `below`.
    pub name: &'static str,
    /// How many nodes it takes.
    pub takes: Takes,
}

/// A port that takes one node.
pub const fn one(name: &'static str) -> PortKey {
    PortKey { name, takes: Takes::One }
}

/// A port that takes one node or none.
pub const fn optional(name: &'static str) -> PortKey {
    PortKey { name, takes: Takes::Optional }
}

/// A port that takes a list of nodes.
pub const fn several(name: &'static str) -> PortKey {
    PortKey { name, takes: Takes::Several }
}

/// How a kind writes its key `below`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// What its last port takes, and nothing else: `below = "disk"`, `below = ["a", "b"]`.
    Short,
    /// A table of its ports: `below = { flash = "ssd", backing = "smr" }`.
    Table,
    /// Either. In the short form the node behind the last port stands for those of the ports that need
    /// one too.
    Both,
}

/// The ports of a kind.
pub trait Ports: 'static {
    /// In the order of the ports of the layer. The last one leads to the node that holds the data.
    const PORTS: &'static [PortKey];
    /// How they are written.
    const FORM: Form;
}

/// The nodes behind the ports of a node, as its key `below` names them.
pub struct BelowNodes<P> {
    /// By port.
    nodes: Vec<Vec<String>>,
    is_short: bool,
    ports: PhantomData<P>,
}

/// A port of a node, with the nodes behind it.
pub struct PortNodes<'a> {
    /// The port.
    pub key: PortKey,
    /// The nodes, in their order.
    pub nodes: Vec<&'a str>,
}

impl<P: Ports> BelowNodes<P> {
    /// The nodes behind a port.
    pub fn several(&self, port: &str) -> &[String] {
        let at = P::PORTS.iter().position(|known| known.name == port);
        &self.nodes[at.expect("a port of the kind")]
    }

    /// The node behind a port, if there is one.
    pub fn optional(&self, port: &str) -> Option<&str> {
        self.several(port).first().map(String::as_str)
    }

    /// The node behind a port that takes one: in the short form that of the last port.
    pub fn one(&self, port: &str) -> &str {
        let last = self.nodes.last().and_then(|last| last.first());
        self.optional(port).or(last.map(String::as_str)).expect("a port that takes one")
    }

    /// Whether the last port alone is written, which stands for all that need a node.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// The ports behind which there is a node.
    pub fn ports(&self) -> Vec<PortNodes<'_>> {
        let all = P::PORTS.iter().zip(&self.nodes);
        all.filter(|(_, nodes)| !nodes.is_empty())
            .map(|(key, nodes)| PortNodes {
                key: *key,
                nodes: nodes.iter().map(String::as_str).collect(),
            })
            .collect()
    }
}

impl<P> Clone for BelowNodes<P> {
    fn clone(&self) -> BelowNodes<P> {
        let nodes = self.nodes.clone();
        BelowNodes { nodes, is_short: self.is_short, ports: PhantomData }
    }
}

impl<P> fmt::Debug for BelowNodes<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nodes.fmt(f)
    }
}

impl<P: Ports> Serialize for BelowNodes<P> {
    /// In a table the ports that need a node come first, and the others in the order of the alphabet: images
    /// have had them so.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let last = P::PORTS.len() - 1;
        if self.is_short {
            return match P::PORTS[last].takes {
                Takes::Several => self.nodes[last].serialize(to),
                Takes::One | Takes::Optional => self.nodes[last][0].serialize(to),
            };
        }
        let mut table = to.serialize_map(None)?;
        let mut ports: Vec<_> = P::PORTS.iter().zip(&self.nodes).collect();
        ports.sort_by_key(|(key, _)| match key.takes {
            Takes::Optional => (true, key.name),
            Takes::One | Takes::Several => (false, ""),
        });
        for (key, nodes) in ports {
            match key.takes {
                Takes::Several => table.serialize_entry(key.name, nodes)?,
                Takes::One => table.serialize_entry(key.name, &nodes[0])?,
                Takes::Optional if nodes.is_empty() => {}
                Takes::Optional => table.serialize_entry(key.name, &nodes[0])?,
            }
        }
        table.end()
    }
}

impl<'de, P: Ports> Deserialize<'de> for BelowNodes<P> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<BelowNodes<P>, D::Error> {
        from.deserialize_any(Below(PhantomData))
    }
}

/// What a port is given.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of a node, or a list of names")]
enum Given {
    One(String),
    Several(Vec<String>),
}

struct Below<P>(PhantomData<P>);

impl<P: Ports> Below<P> {
    fn short<E: Error>(given: Given) -> Result<BelowNodes<P>, E> {
        let last = P::PORTS.len() - 1;
        let mut nodes = vec![vec![]; last];
        nodes.push(taken(P::PORTS[last], "below", given)?);
        Ok(BelowNodes { nodes, is_short: true, ports: PhantomData })
    }
}

/// The nodes that a port is given, if it takes so many.
fn taken<E: Error>(port: PortKey, key: &str, given: Given) -> Result<Vec<String>, E> {
    match (port.takes, given) {
        (Takes::Several, Given::Several(nodes)) => match nodes.len() {
            0 => Err(E::custom(format!(
                "{key} = []; accepted: the names of 1 to {PORT_NODES_MAX} nodes"
            ))),
            more if more > PORT_NODES_MAX => {
                Err(E::custom(format!("{key} has {more} nodes; accepted: 1 to {PORT_NODES_MAX}")))
            }
            _ => Ok(nodes),
        },
        (Takes::Several, Given::One(node)) => {
            Err(E::custom(format!("{key} = \"{node}\"; accepted: a list of names, [\"{node}\"]")))
        }
        (Takes::One | Takes::Optional, Given::One(node)) => Ok(vec![node]),
        (Takes::One | Takes::Optional, Given::Several(_)) => {
            Err(E::custom(format!("{key} is a list; accepted: the name of one node")))
        }
    }
}

impl<'de, P: Ports> Visitor<'de> for Below<P> {
    type Value = BelowNodes<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = match P::PORTS.last().expect("a kind with a port").takes {
            Takes::Several => "a list of names of nodes",
            Takes::One | Takes::Optional => "the name of a node",
        };
        let table = P::PORTS.iter().map(|port| match port.takes {
            Takes::One | Takes::Optional => format!("{} = NODE", port.name),
            Takes::Several => format!("{} = [NODE, ...]", port.name),
        });
        let table = table.collect::<Vec<_>>().join(", ");
        match P::FORM {
            Form::Short => f.write_str(short),
            Form::Table => write!(f, "{{ {table} }}"),
            Form::Both => write!(f, "{short}, or {{ {table} }}"),
        }
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<BelowNodes<P>, E> {
        match P::FORM {
            Form::Table => Err(E::invalid_type(serde::de::Unexpected::Str(name), &self)),
            Form::Short | Form::Both => Below::short(Given::One(name.to_owned())),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<BelowNodes<P>, A::Error> {
        if P::FORM == Form::Table {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        }
        let names = Vec::deserialize(SeqAccessDeserializer::new(names))?;
        Below::short(Given::Several(names))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<BelowNodes<P>, A::Error> {
        if P::FORM == Form::Short {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self));
        }
        let mut given: BTreeMap<String, Given> =
            BTreeMap::deserialize(MapAccessDeserializer::new(table))?;
        if let Some(unknown) =
            given.keys().find(|key| !P::PORTS.iter().any(|port| port.name == **key))
        {
            let known: Vec<String> =
                P::PORTS.iter().map(|port| format!("`{}`", port.name)).collect();
            let known = known.join(", ");
            let words = format!("unknown field `{unknown}`, expected one of {known}");
            return Err(A::Error::custom(words));
        }
        let mut nodes = Vec::new();
        for port in P::PORTS {
            nodes.push(match given.remove(port.name) {
                Some(given) => taken(*port, port.name, given)?,
                None if port.takes == Takes::Optional => vec![],
                None => return Err(A::Error::missing_field(port.name)),
            });
        }
        Ok(BelowNodes { nodes, is_short: false, ports: PhantomData })
    }
}
