//! Addresses: to which of them a connection may be made.
//!
//! In: the address of a connection, written in a URL or looked up; the networks that the host allows; the addresses of
//! the host's own interfaces. Out: whether it may be dialled. The same rule holds for each connection of each hop, and
//! an address that was judged is the one to dial: nothing may look it up again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use isolane::{Error, ErrorKind};
use url::{Host, Url};

use crate::error::KitError;

use super::target::shown_host;

/// IPv4 networks that no request reaches, from the registry of special-purpose addresses. The last one is a service of
/// a cloud at a public address.
const REFUSED_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

/// The IPv6 network of public addresses. All others are refused.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// IPv6 networks in [`PUBLIC_V6`] that no request reaches.
const REFUSED_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Where clouds serve the credentials of a machine. Only a network of one address allows such a one.
const METADATA: [IpAddr; 9] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// A network: all addresses whose first bits are these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    first: IpAddr,
    prefix_bits: u32,
}

impl Network {
    /// Reads a CIDR; an address alone is a network of one.
    fn read(text: &str) -> Result<Self, String> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let first: IpAddr =
            address.parse().map_err(|_| "it is no IP address and no CIDR".to_owned())?;
        let width = if first.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &&str| {
            text.bytes().all(|byte| byte.is_ascii_digit())
                && (*text == "0" || !text.starts_with('0'))
        };
        let prefix_bits = match prefix {
            None => width,
            Some(prefix) => Some(prefix)
                .filter(is_number)
                .and_then(|prefix| prefix.parse().ok())
                .filter(|bits| *bits <= width)
                .ok_or_else(|| format!("a prefix is a number from 0 to {width}"))?,
        };
        let network = Self { first, prefix_bits };
        let is_first = match first {
            IpAddr::V4(v4) => v4.to_bits() & !mask_v4(prefix_bits) == 0,
            IpAddr::V6(v6) => v6.to_bits() & !mask_v6(prefix_bits) == 0,
        };
        if is_first { Ok(network) } else { Err("bits of the host are set".into()) }
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                is_in_v4(address, (first, self.prefix_bits))
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                is_in_v6(address, (first, self.prefix_bits))
            }
            _ => false,
        }
    }
}

fn mask_v4(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits).unwrap_or(0)
}

fn mask_v6(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

fn is_in_v4(address: Ipv4Addr, (first, bits): (Ipv4Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) & mask_v4(bits) == 0
}

fn is_in_v6(address: Ipv6Addr, (first, bits): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ first.to_bits()) & mask_v6(bits) == 0
}

/// The addresses that may be dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    allowed: Vec<Network>,
    own: Vec<IpAddr>,
}

impl Addresses {
    /// Public addresses, and those of the networks: `10.0.0.0/8`, `fd12::/16`, `192.168.0.7`. `place` is the option, for
    /// the error: `fetch.allowAddresses`.
    ///
    /// # Errors
    /// Misuse: a text that is no CIDR, or one in which bits of the host are set.
    pub fn new<'a>(
        networks: impl IntoIterator<Item = &'a str>,
        place: &str,
    ) -> Result<Self, Error> {
        let read = |(index, text): (usize, &str)| {
            Network::read(text).map_err(|why| {
                let message = format!("{place}[{index}]: '{text}' is not a valid network: {why}");
                Error::new(ErrorKind::Type, message)
            })
        };
        let allowed = networks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { allowed, own: Vec::new() })
    }

    /// The same, but for these addresses, which are the host's own interfaces at the moment.
    #[must_use]
    pub fn without(self, own: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { own: own.into_iter().collect(), ..self }
    }

    /// Whether that address may be dialled.
    #[must_use]
    pub fn may_dial(&self, address: IpAddr) -> bool {
        let is_lifted = if METADATA.contains(&address) {
            let is_single =
                |network: &Network| network.prefix_bits == if address.is_ipv4() { 32 } else { 128 };
            self.allowed.iter().any(|network| is_single(network) && network.contains(address))
        } else {
            self.allowed.iter().any(|network| network.contains(address))
        };
        if !is_lifted {
            return is_public(address) && !self.own.contains(&address);
        }
        // A gateway passes packets to this one on to the address inside.
        let inner = match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(outer) => inner_v4(outer),
        };
        inner.is_none_or(|inner| self.may_dial(IpAddr::V4(inner)))
    }

    /// Those of the addresses of a host that may be dialled, in their order.
    ///
    /// # Errors
    /// `FetchBlocked` if there is none.
    pub fn dialled(
        &self,
        url: &Url,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Vec<IpAddr>, KitError> {
        let passing: Vec<_> =
            addresses.into_iter().filter(|address| self.may_dial(*address)).collect();
        if passing.is_empty() {
            let host = shown_host(url);
            return Err(KitError::fetch_blocked(format!(
                "{host} has no address that may be reached"
            )));
        }
        Ok(passing)
    }
}

/// The address that a URL has as its host: that one is not looked up, but judged all the same.
#[must_use]
pub fn written_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Whether an address is in no refused network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !REFUSED_V4.iter().any(|network| is_in_v4(address, *network)),
        IpAddr::V6(address) => {
            is_in_v6(address, PUBLIC_V6)
                && !REFUSED_V6.iter().any(|network| is_in_v6(address, *network))
        }
    }
}

/// The IPv4 address in an IPv6 address of a translation: mapped, compatible, NAT64, 6to4, Teredo or ISATAP.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    const LOOPBACK: u32 = 1;
    let octets = address.octets();
    let at = |from: usize| Ipv4Addr::from([0, 1, 2, 3].map(|octet| octets[from + octet]));
    match address.segments() {
        [0x2002, ..] => Some(at(2)),
        // Teredo writes it with all bits flipped.
        [0x2001, 0, ..] => Some(Ipv4Addr::from_bits(!at(12).to_bits())),
        [0, 0, 0, 0, 0, 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0 | 1, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Some(at(12)),
        [0, 0, 0, 0, 0, 0, ..] => Some(at(12)).filter(|inner| inner.to_bits() > LOOPBACK),
        _ => None,
    }
}
