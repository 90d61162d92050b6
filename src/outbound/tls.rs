//! Whom the server believes to be who they say.
//!
//! The public authorities are those of Mozilla, compiled in: a container without a certificate store works,
//! two servers of one version believe the same, and nothing is read from places that the environment
//! names. The price is that they change with the version; an authority of one's own is an extra root.
//!
//! Certificates are held against the system's clock, also when the server's own is stepped by hand: the
//! other side lives in real time.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::SetupError;

pub(super) fn connector(
    extra_roots: Vec<CertificateDer<'static>>,
) -> Result<TlsConnector, SetupError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for (index, root) in extra_roots.into_iter().enumerate() {
        roots.add(root).map_err(|cause| SetupError::Root { number: index + 1, cause })?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the cipher suites of both versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Calls share nothing, so that what one of them is told does not depend on another.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}
