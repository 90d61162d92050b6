//! The table of addresses, and what is done with each kind.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::outbound::Kind::{LinkLocal, Loopback, Many, Private, Public, Reserved, Unspecified};
use crate::outbound::address::judge;
use crate::outbound::target::Scheme;

/// The first and last of each block, and their neighbours outside.
const TABLE: [(&str, Kind); 97] = [
    ("0.0.0.0", Unspecified),
    ("0.1.2.3", Unspecified),
    ("0.255.255.255", Unspecified),
    ("1.0.0.0", Public),
    ("8.8.8.8", Public),
    ("9.255.255.255", Public),
    ("10.0.0.0", Private),
    ("10.255.255.255", Private),
    ("11.0.0.0", Public),
    ("100.63.255.255", Public),
    ("100.64.0.0", Private),
    ("100.127.255.255", Private),
    ("100.128.0.0", Public),
    ("126.255.255.255", Public),
    ("127.0.0.0", Loopback),
    ("127.0.0.1", Loopback),
    ("127.255.255.255", Loopback),
    ("128.0.0.0", Public),
    ("169.253.255.255", Public),
    ("169.254.0.0", LinkLocal),
    ("169.254.169.254", LinkLocal),
    ("169.254.255.255", LinkLocal),
    ("169.255.0.0", Public),
    ("172.15.255.255", Public),
    ("172.16.0.0", Private),
    ("172.31.255.255", Private),
    ("172.32.0.0", Public),
    ("191.255.255.255", Public),
    ("192.0.0.0", Reserved),
    ("192.0.0.255", Reserved),
    ("192.0.1.0", Public),
    ("192.0.2.0", Reserved),
    ("192.0.2.255", Reserved),
    ("192.0.3.0", Public),
    ("192.88.98.255", Public),
    ("192.88.99.1", Reserved),
    ("192.88.100.0", Public),
    ("192.167.255.255", Public),
    ("192.168.0.0", Private),
    ("192.168.255.255", Private),
    ("192.169.0.0", Public),
    ("198.17.255.255", Public),
    ("198.18.0.0", Reserved),
    ("198.19.255.255", Reserved),
    ("198.20.0.0", Public),
    ("198.51.99.255", Public),
    ("198.51.100.7", Reserved),
    ("198.51.101.0", Public),
    ("203.0.112.255", Public),
    ("203.0.113.9", Reserved),
    ("203.0.114.0", Public),
    ("223.255.255.255", Public),
    ("224.0.0.0", Many),
    ("239.255.255.255", Many),
    ("240.0.0.0", Reserved),
    ("255.255.255.254", Reserved),
    ("255.255.255.255", Many),
    ("::", Unspecified),
    ("::1", Loopback),
    ("::2", Unspecified),
    ("::7f00:1", Loopback),
    ("::10.1.2.3", Private),
    ("::8.8.8.8", Public),
    ("::ffff:127.0.0.1", Loopback),
    ("::ffff:169.254.169.254", LinkLocal),
    ("::ffff:8.8.8.8", Public),
    ("::ffff:0.0.0.0", Unspecified),
    ("::ffff:0:8.8.8.8", Reserved),
    ("64:ff9b::127.0.0.1", Loopback),
    ("64:ff9b::192.168.1.1", Private),
    ("64:ff9b::8.8.8.8", Public),
    ("64:ff9b:0:0:0:1:808:808", Reserved),
    ("64:ff9b:1::8.8.8.8", Private),
    ("64:ff9b:2::8.8.8.8", Reserved),
    ("100::1", Reserved),
    ("1fff:ffff::1", Reserved),
    ("2001::1", Reserved),
    ("2001:1ff:ffff::1", Reserved),
    ("2001:200::1", Public),
    ("2001:db8::1", Reserved),
    ("2001:db9::1", Public),
    ("2002:7f00:1::1", Loopback),
    ("2002:a00:1::", Private),
    ("2002:808:808::1", Public),
    ("2606:4700::1111", Public),
    ("3ffe:ffff::1", Public),
    ("3fff::1", Reserved),
    ("3fff:1000::1", Public),
    ("4000::1", Reserved),
    ("5f00::1", Reserved),
    ("fbff:ffff::1", Reserved),
    ("fc00::1", Private),
    ("fdff:ffff::1", Private),
    ("fe7f:ffff::1", Reserved),
    ("fe80::1", LinkLocal),
    ("fec0::1", Private),
    ("ff02::1", Many),
];

#[test]
fn every_block_begins_and_ends_where_the_registries_say() {
    for (text, kind) in TABLE {
        assert_eq!(Kind::of(text.parse().unwrap()), kind, "{text}");
    }
}

#[test]
fn public_addresses_are_called_private_ones_when_allowed_and_the_rest_never() {
    for (text, kind) in TABLE {
        let may = |scheme, private| judge(text.parse().unwrap(), scheme, private).is_ok();
        let public = kind == Public;
        let private = matches!(kind, Loopback | Private | LinkLocal);
        assert_eq!(may(Scheme::Https, PrivateTargets::Refused), public, "{text}");
        assert_eq!(may(Scheme::Https, PrivateTargets::Allowed), public || private, "{text}");
        assert_eq!(may(Scheme::Http, PrivateTargets::Allowed), private, "{text}");
        assert!(!may(Scheme::Http, PrivateTargets::Refused), "{text}");
    }
}

#[test]
fn the_server_does_not_call_itself() {
    let own = |listener: &str| {
        Judge::new(
            PrivateTargets::Allowed,
            vec!["10.0.0.1:7400".parse().unwrap(), listener.parse().unwrap()],
        )
    };
    for (listener, address, refused) in [
        ("127.0.0.1:7400", "127.0.0.1:7400", true),
        ("127.0.0.1:7400", "127.0.0.1:7401", false),
        ("127.0.0.1:7400", "127.0.0.2:7400", false),
        ("127.0.0.1:7400", "10.0.0.1:7400", true),
        ("127.0.0.1:7400", "[::ffff:127.0.0.1]:7400", true),
        ("0.0.0.0:7400", "127.0.0.1:7400", true),
        ("0.0.0.0:7400", "10.0.0.2:7400", false),
        ("[::]:7400", "127.9.9.9:7400", true),
        ("[::]:7400", "[::1]:7400", true),
        ("[::]:7400", "[::1]:7500", false),
    ] {
        let answer = own(listener).judge(address.parse().unwrap(), Scheme::Http);
        let error = AddressError::Own { address: address.parse().unwrap() };
        assert_eq!(answer, if refused { Err(error) } else { Ok(()) }, "{listener}, {address}");
    }
}

proptest! {
    #[test]
    fn an_address_in_another_is_what_the_inner_one_is(bits: u32, rest: u64) {
        let inner = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = inner.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let [s, t, u, v] = [48, 32, 16, 0].map(|shift| (rest >> shift) as u16);
        for outer in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, s, t, u, v, 0),
        ] {
            prop_assert_eq!(Kind::of(outer.into()), Kind::of(inner.into()), "{}", outer);
        }
        if bits > 1 {
            let compatible = Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low);
            prop_assert_eq!(Kind::of(compatible.into()), Kind::of(inner.into()));
        }
    }

    /// The standard library knows some of the blocks, too: what it calls special is not public here.
    #[test]
    fn what_the_standard_library_calls_special_is_not_public(bits: u32, wide: u128) {
        let v4 = Ipv4Addr::from_bits(bits);
        if v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_multicast()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified() {
            prop_assert_ne!(Kind::of(v4.into()), Public);
        }
        let v6 = Ipv6Addr::from_bits(wide);
        if v6.is_loopback() || v6.is_multicast() || v6.is_unique_local() || v6.is_unspecified()
            || v6.is_unicast_link_local() {
            prop_assert_ne!(Kind::of(v6.into()), Public);
        }
    }
}
