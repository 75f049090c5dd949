//! The gate of a port: opened, moved and closed by the control thread when the port's device comes and goes.

use std::io;
use std::sync::Arc;

use crate::config::Backend;
use crate::io::entrance::{EntranceSocket, WayBack};
use crate::io::packet::{Receive, Socket};
use crate::kernel::gate::{Gate, GateAt, GateState, KEPT};

/// The gate of a port.
#[derive(Debug)]
pub(super) struct PortGate {
    gate: Arc<Gate>,
    /// The ways back, one for each thread that looks up.
    entrances: Vec<EntranceSocket>,
    /// With AF_XDP, the socket of the frames that the gate keeps. Packet sockets have them anyway.
    beside: Option<Socket>,
    at: Option<GateAt>,
}

impl PortGate {
    /// Opens the sockets of a port, before it has its device. Returns the ends for `threads` threads that look up, and the ring for the first
    /// thread that receives.
    pub(super) fn open(
        gate: &Arc<Gate>,
        backend: &Backend,
        threads: usize,
    ) -> io::Result<(Self, Vec<WayBack>, Option<Receive>)> {
        let opened: Vec<_> = (0..threads).map(|_| WayBack::open(gate)).collect::<io::Result<_>>()?;
        let (ends, entrances) = opened.into_iter().unzip();
        let ring = match backend {
            Backend::Xdp { frames, .. } => Some(Receive::open(*frames)?),
            _ => None,
        };
        let beside = ring.as_ref().map(Receive::socket).transpose()?.map(|socket| socket.through(KEPT));
        Ok((Self { gate: Arc::clone(gate), entrances, beside, at: None }, ends, ring))
    }

    /// Gives the gate its device.
    pub(super) fn move_to(&mut self, device: u32) -> io::Result<()> {
        // It may be the same one, which is only believed to be another one because events were lost.
        self.at = None;
        self.entrances.iter().try_for_each(|entrance| entrance.move_to(device))
    }

    /// Attaches the gate, which is open, and binds the ring, which refuses frames: see `DevicePort::prepare`.
    pub(super) fn prepare(&mut self, device: u32) -> io::Result<()> {
        if let Some(socket) = &self.beside {
            socket.refuse_frames()?;
            socket.move_to(device)?;
        }
        self.at = Some(self.gate.attach(device)?);
        Ok(())
    }

    /// Closes the gate. A frame that comes between the two steps reaches the kernel twice.
    pub(super) fn close(&self) -> io::Result<()> {
        self.beside.iter().try_for_each(Socket::take_frames)?;
        self.set(GateState::Closed)
    }

    /// Opens or closes the gate, where there is one.
    pub(super) fn set(&self, state: GateState) -> io::Result<()> {
        self.at.iter().try_for_each(|at| at.set(state))
    }

    /// Opens the gate and takes it from the device, which is gone or is given back.
    pub(super) fn detach(&mut self) {
        self.at = None;
    }

    /// Returns the socket beside those of AF_XDP.
    pub(super) const fn beside(&self) -> Option<&Socket> {
        self.beside.as_ref()
    }
}
