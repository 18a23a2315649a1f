//! GPU devices of a node, one by one, so that a pod may hold a share of one.

use smallvec::SmallVec;

use crate::task::DeviceShare;

/// Thousandths of a device.
pub const WHOLE: u16 = 1000;

/// What a pod asks of a node's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// None.
    Nothing,
    /// This many thousandths of one device.
    Share(u16),
    /// This many whole devices.
    Whole(u32),
}

/// The devices of one node: thousandths in use of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    used: SmallVec<[u16; 8]>,
}

impl Devices {
    /// `n` idle devices, at most 255.
    pub fn idle(n: u8) -> Self {
        Self { used: SmallVec::from_elem(0, usize::from(n)) }
    }

    /// How many devices there are.
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Thousandths in use of each device.
    pub fn used(&self) -> &[u16] {
        &self.used
    }

    /// The devices that would serve `request`, or `None`.
    ///
    /// A share goes to the fullest device that still has room, which keeps whole devices whole; ties to the lowest
    /// index. Whole devices are taken from the lowest index up.
    pub fn choose(&self, request: DeviceRequest) -> Option<SmallVec<[DeviceShare; 1]>> {
        let indexed = || (0_u8..).zip(self.used.iter().copied());
        match request {
            DeviceRequest::Nothing => Some(SmallVec::new()),
            DeviceRequest::Share(milli) => {
                let (device, _) = indexed()
                    .filter(|(_, used)| used.saturating_add(milli) <= WHOLE)
                    .max_by_key(|(device, used)| (*used, std::cmp::Reverse(*device)))?;
                Some(SmallVec::from_elem((device, milli), 1))
            }
            DeviceRequest::Whole(n) => {
                let free: SmallVec<[DeviceShare; 1]> = indexed()
                    .filter(|(_, used)| *used == 0)
                    .take(n as usize)
                    .map(|(device, _)| (device, WHOLE))
                    .collect();
                (free.len() == n as usize).then_some(free)
            }
        }
    }

    /// As [`Self::choose`]; a share is taken of `preferred`, if that device has so much left.
    pub fn choose_with(&self, request: DeviceRequest, preferred: Option<u8>) -> Option<SmallVec<[DeviceShare; 1]>> {
        if let (DeviceRequest::Share(milli), Some(device)) = (request, preferred)
            && self.used.get(usize::from(device)).is_some_and(|used| used.saturating_add(milli) <= WHOLE)
        {
            return Some(SmallVec::from_elem((device, milli), 1));
        }
        self.choose(request)
    }

    pub(crate) fn take(&mut self, shares: &[DeviceShare]) {
        for &(device, milli) in shares {
            if let Some(used) = self.used.get_mut(usize::from(device)) {
                *used = used.saturating_add(milli);
            }
        }
    }

    pub(crate) fn give_back(&mut self, shares: &[DeviceShare]) {
        for &(device, milli) in shares {
            if let Some(used) = self.used.get_mut(usize::from(device)) {
                *used = used.saturating_sub(milli);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_used_devices_before_idle_ones() {
        let mut devices = Devices::idle(2);
        devices.take(&[(1, 400)]);
        assert_eq!(devices.choose(DeviceRequest::Share(600)).as_deref(), Some(&[(1, 600)][..]));
        assert_eq!(devices.choose(DeviceRequest::Share(601)).as_deref(), Some(&[(0, 601)][..]));
        assert_eq!(devices.choose(DeviceRequest::Whole(1)).as_deref(), Some(&[(0, 1000)][..]));
        assert_eq!(devices.choose(DeviceRequest::Whole(2)), None);
        let with = |milli, device| devices.choose_with(DeviceRequest::Share(milli), Some(device)).map(|one| one[0].0);
        assert_eq!([with(600, 0), with(600, 1), with(601, 1), with(600, 7)], [Some(0), Some(1), Some(0), Some(1)]);
    }
}
