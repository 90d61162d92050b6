//! Who is believed: a server with a certificate of an authority that was made for the test.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::*;

pub(super) struct Authority {
    root: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A server for one call.
pub(super) struct TlsServer {
    pub(super) address: SocketAddr,
    /// The name that the client asked for, what was agreed on, and the request; or why there was no TLS.
    seen: JoinHandle<io::Result<Seen>>,
}

struct Seen {
    name: Option<String>,
    protocol: Option<Vec<u8>>,
    request: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).unwrap().der().clone();
        Self { root, issuer: Issuer::new(params, key) }
    }

    /// The settings of a production server, which believes this authority besides.
    pub(super) fn trusted(&self) -> OutboundSettings {
        let extra_roots = vec![self.root.clone()];
        OutboundSettings { extra_roots, ..settings(PrivateTargets::Refused) }
    }

    /// A server that has a certificate for `name` and gives one `answer`.
    pub(super) async fn server(&self, name: &str, answer: String) -> TlsServer {
        let (listener, address) = listener().await;
        let acceptor = self.acceptor(name);
        let seen = tokio::spawn(async move {
            let (stream, _) = listener.accept().await?;
            let mut stream = acceptor.accept(stream).await?;
            let connection = stream.get_ref().1;
            let name = connection.server_name().map(str::to_owned);
            let protocol = connection.alpn_protocol().map(<[u8]>::to_vec);
            let request = read_request(&mut stream).await;
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            Ok(Seen { name, protocol, request })
        });
        TlsServer { address, seen }
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

async fn call(settings: OutboundSettings, server: &TlsServer) -> Result<Reply, OutboundError> {
    let public = Answers::new(&[&[PUBLIC]]);
    let outbound = with_dialer(settings, public, Detour::to(server.address));
    post(&outbound, &outbound.target("https://hook.test/checks").unwrap()).await
}

#[tokio::test]
async fn a_server_with_a_good_certificate_is_called_by_its_name() {
    let authority = Authority::new();
    let server = authority.server("hook.test", ok("{\"state\":\"COMMIT\"}")).await;
    let reply = call(authority.trusted(), &server).await.unwrap();
    assert_eq!(reply.body, "{\"state\":\"COMMIT\"}");
    let seen = server.seen.await.unwrap().unwrap();
    assert_eq!(seen.name.as_deref(), Some("hook.test"));
    assert_eq!(seen.protocol.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(header(&seen.request, "host"), "hook.test");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_believed() {
    let authority = Authority::new();
    let server = authority.server("other.test", ok("{}")).await;
    let why = not_sent(call(authority.trusted(), &server).await);
    assert!(matches!(why, NotSent::Tls { .. }), "{why}");
    assert!(why.to_string().contains("not valid for name"), "{why}");
    assert!(server.seen.await.unwrap().is_err(), "no request may have been read");
}

#[tokio::test]
async fn an_authority_that_nobody_named_is_not_believed() {
    let authority = Authority::new();
    let server = authority.server("hook.test", ok("{}")).await;
    let why = not_sent(call(settings(PrivateTargets::Refused), &server).await);
    assert!(matches!(why, NotSent::Tls { .. }), "{why}");
    assert!(why.to_string().contains("UnknownIssuer"), "{why}");
    assert!(server.seen.await.unwrap().is_err(), "no request may have been read");

    let another = Authority::new();
    let server = authority.server("hook.test", ok("{}")).await;
    let why = not_sent(call(another.trusted(), &server).await);
    assert!(matches!(why, NotSent::Tls { .. }), "{why}");
}

#[tokio::test]
async fn private_targets_have_to_show_a_certificate_like_any_other() {
    let authority = Authority::new();
    let server = authority.server("hook.test", ok("{}")).await;
    let url = format!("https://127.0.0.1:{}/", server.address.port());
    let why = not_sent(post(&local(), &target(&url)).await);
    assert!(matches!(why, NotSent::Tls { .. }), "{why}");
}

#[tokio::test]
async fn what_does_not_speak_tls_is_sent_nothing() {
    let (listener, address) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let mut bytes = Vec::new();
        // The client may reset the connection, since it did not read all of it.
        let _ = stream.read_to_end(&mut bytes).await;
        bytes
    });
    let url = format!("https://hook.test:{}/", address.port());
    let why = not_sent(post(&local(), &target(&url)).await);
    assert!(matches!(why, NotSent::Tls { .. }), "{why}");
    let bytes = server.await.unwrap();
    assert!(!bytes.windows(4).any(|four| four == b"POST"), "{bytes:?}");
}

#[test]
fn an_extra_root_that_is_no_certificate_is_refused_at_the_start() {
    let extra_roots = vec![Authority::new().root, CertificateDer::from(vec![1, 2, 3])];
    let settings = OutboundSettings { extra_roots, ..settings(PrivateTargets::Refused) };
    let error = Outbound::new(settings, Answers::new(&[&[]])).unwrap_err();
    assert!(error.to_string().contains("number 2"), "{error}");
}
