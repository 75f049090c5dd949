//! A software router: receives packets, looks up their routes, rewrites their headers and sends them.
//!
//! - [`acl`]: rules that permit, deny or count packets.
//! - [`forward`]: the pipeline, and its configuration.
//! - [`packet`]: the rules for Ethernet, ARP, IPv4, IPv6, ICMP and neighbour discovery. Does no I/O.
//! - [`neighbour`]: the MAC addresses of next hops.
//! - [`io`]: packet I/O, with one file or folder for each back end.
//! - [`sampling`]: samples of packets, for people and collectors.
//! - [`stage`]: the pipeline on several threads, with rings between them; [`place`]: the processor of each thread.
//! - `bfd` (Linux): the sessions of FRR's bfdd.
//! - [`config`]: the configuration file.
//! - [`api`]: the answers of the control socket, as structs that the router and the command share.
//! - `control`, `kernel` (Linux): running a router, and following the kernel.
//! - [`measure`]: the pipeline on ports in memory, for measurements.
//! - [`police`]: policers, for packets to the machine itself.
//! - [`drops`]: **the list** of reasons to drop a packet; [`count`]: counters.
//!
//! # Example
//!
//! ```
//! use fibula::Table;
//! use fibula::net::{IpPrefix, NextHop};
//! use fibula_router::forward::fabric::{Fabric, Hop, Interface, Port, Urpf, Vrf};
//! use fibula_router::forward::{Shared, Worker};
//! use fibula_router::io::memory::Memory;
//! use fibula_router::count::PortCounters;
//! use fibula_router::drops::DropReason;
//! use fibula_router::packet::ethernet::Tags;
//!
//! let table = Table::new()?;
//! table.insert("192.0.2.0/24".parse::<IpPrefix>()?, NextHop::try_from(1)?)?;
//! let mut port = Port::new("left", false);
//! port.attach(Tags::NONE, 0);
//! let interface = Interface {
//!     name: "left".into(), port: 0, tags: Tags::NONE, mac: "02:00:00:00:00:01".parse()?, virtual_macs: vec![],
//!     mtu: 1500, v4: vec![], v6: vec![], vrf: 0, urpf: Urpf::Off, kernel: false, machine: None, up: true, missing: false,
//! };
//! let fabric = Fabric {
//!     ports: vec![port],
//!     interfaces: vec![interface],
//!     vrfs: vec![Vrf { name: "default".into(), table }],
//!     hops: vec![None, Some(Hop::Blackhole)],
//!     ..Fabric::default()
//! };
//! let counters: std::sync::Arc<[PortCounters]> = vec![PortCounters::default()].into();
//! let mut worker = Worker::new(Shared::new(fabric, Default::default()), counters.clone())?;
//! let mut io = Memory::new(1);
//! io.ports[0].input.push_back(vec![0; 10].into());
//! worker.burst(&mut io, 0, 0);
//! assert_eq!(counters[0].dropped(DropReason::FrameTruncated), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod acl;
pub mod api;
#[cfg(target_os = "linux")]
pub mod bfd;
pub mod config;
#[cfg(target_os = "linux")]
pub mod control;
pub mod count;
pub mod drops;
#[cfg(target_os = "linux")]
pub mod feed;
pub mod forward;
pub mod io;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod measure;
pub mod neighbour;
pub mod packet;
pub mod place;
pub mod police;
pub mod sampling;
pub mod stage;
