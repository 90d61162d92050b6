//! Which addresses the server may connect to.
//!
//! The special blocks are those of IANA's registries (RFC 6890 and its successors). Of IPv6 only 2000::/3
//! has been given out as global unicast, so everything outside it is refused without a list to keep.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::target::Scheme;
use crate::config::PrivateTargets;

/// What sort of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anybody's, on the internet.
    Public,
    /// This machine.
    Loopback,
    /// Of a network of its owner: RFC 1918, 100.64.0.0/10, fc00::/7, fec0::/10, 64:ff9b:1::/48.
    Private,
    /// Of the wire this machine is on, where clouds keep their metadata services.
    LinkLocal,
    /// No address at all, yet systems take it for this machine.
    Unspecified,
    /// Of many machines: multicast and broadcast.
    Many,
    /// For documentation, benchmarks, protocols and relays, or not given to anybody.
    Reserved,
}

impl Kind {
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match inner(address) {
                Some(inner) => of_v4(inner),
                None => of_v6(address),
            },
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Unspecified => "an unspecified address",
            Self::Many => "a multicast or broadcast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Why an address may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("{address} is {kind}, and those are not called")]
    Never { address: IpAddr, kind: Kind },
    #[error("{address} is {kind}, and those are called only with --allow-private-targets")]
    NotPublic { address: IpAddr, kind: Kind },
    #[error("{address} is a public address, and those are called over https only")]
    PlainToPublic { address: IpAddr },
    #[error("{address} is where this server listens itself")]
    Own { address: SocketAddr },
}

/// Decides by the settings; the same for a literal address in a URL and for what a resolver said.
pub(super) fn judge(
    address: IpAddr,
    scheme: Scheme,
    private_targets: PrivateTargets,
) -> Result<(), AddressError> {
    let kind = Kind::of(address);
    match (kind, private_targets) {
        (Kind::Public, _) => match scheme {
            Scheme::Https => Ok(()),
            Scheme::Http => Err(AddressError::PlainToPublic { address }),
        },
        (Kind::Loopback | Kind::Private | Kind::LinkLocal, PrivateTargets::Allowed) => Ok(()),
        (Kind::Loopback | Kind::Private | Kind::LinkLocal, PrivateTargets::Refused) => {
            Err(AddressError::NotPublic { address, kind })
        }
        (Kind::Unspecified | Kind::Many | Kind::Reserved, _) => {
            Err(AddressError::Never { address, kind })
        }
    }
}

/// [`judge`], and the knowledge of where this process listens.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    private_targets: PrivateTargets,
    own_listeners: Vec<SocketAddr>,
}

impl Judge {
    pub(super) fn new(private_targets: PrivateTargets, own_listeners: Vec<SocketAddr>) -> Self {
        Self { private_targets, own_listeners }
    }

    pub(super) fn private_targets(&self) -> PrivateTargets {
        self.private_targets
    }

    pub(super) fn judge(&self, address: SocketAddr, scheme: Scheme) -> Result<(), AddressError> {
        judge(address.ip(), scheme, self.private_targets)?;
        if self.own_listeners.iter().any(|own| reaches(address, *own)) {
            return Err(AddressError::Own { address });
        }
        Ok(())
    }
}

/// A listener on all addresses is reached by every loopback address, too.
fn reaches(address: SocketAddr, listener: SocketAddr) -> bool {
    let plain = |ip: IpAddr| match ip {
        IpAddr::V6(v6) => inner(v6).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    };
    let everywhere = plain(listener.ip()).is_unspecified();
    address.port() == listener.port()
        && (plain(address.ip()) == plain(listener.ip())
            || everywhere && Kind::of(address.ip()) == Kind::Loopback)
}

fn of_v4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        [0, ..] => Kind::Unspecified,
        [127, ..] => Kind::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => Kind::Private,
        [169, 254, ..] => Kind::LinkLocal,
        [224..=239, ..] | [255, 255, 255, 255] => Kind::Many,
        // Protocols; the old relays into 6to4; benchmarks.
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Kind::Reserved,
        // Documentation.
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Kind::Reserved,
        [240..=255, ..] => Kind::Reserved,
        _ => Kind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Kind {
    if address.is_unspecified() {
        return Kind::Unspecified;
    }
    if address.is_loopback() {
        return Kind::Loopback;
    }
    match address.segments() {
        [0xfe80..=0xfebf, ..] => Kind::LinkLocal,
        // Unique local, the site-local of before, and the translators that a network has for itself.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Kind::Private,
        [0xff00..=0xffff, ..] => Kind::Many,
        // Protocols (Teredo, benchmarks, identifiers of hosts) and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Kind::Reserved,
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Reserved,
    }
}

/// The IPv4 address to which packets for this one go in the end: mapped, compatible, NAT64, 6to4.
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // :: and ::1 have names of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => Some(from(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}
