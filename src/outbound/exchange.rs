//! One request and its answer over an open connection.

use std::net::SocketAddr;
use std::pin::pin;

use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::connect::Stream;
use super::error::{NotSent, OutboundError, Unknown};
use super::reply::{MAX_REPLY_BYTES, Reply, retry_after};
use super::secret::Secret;
use super::target::Target;
use crate::clock::Timestamp;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Most bytes of an answer's head, and of what is read of its body at a time.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How far a call has come, for the case that its time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Resolving,
    Connecting {
        address: SocketAddr,
    },
    Securing {
        address: SocketAddr,
    },
    /// The request is on its way, or soon will be.
    Sent,
}

impl Progress {
    pub(super) fn out_of_time(self) -> OutboundError {
        match self {
            Self::Resolving => NotSent::ResolveTimeout.into(),
            Self::Connecting { address } => NotSent::ConnectTimeout { address }.into(),
            Self::Securing { address } => NotSent::TlsTimeout { address }.into(),
            Self::Sent => Unknown::Timeout.into(),
        }
    }
}

/// The request, signed where there is a secret.
pub(super) fn request(
    target: &Target,
    id: &str,
    now: Timestamp,
    secret: Option<&Secret>,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, NotSent> {
    let seconds = now.as_millis() / 1000;
    let ascii = "written in ASCII without control characters";
    let signature = secret.map(|secret| secret.sign(id, seconds, &body));
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(target.path.clone());
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::try_from(target.authority()).expect(ascii));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = concat!("horolog/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(WEBHOOK_ID, HeaderValue::try_from(id).map_err(|_| NotSent::Id)?);
    headers.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
    if let Some(signature) = signature {
        headers.insert(WEBHOOK_SIGNATURE, HeaderValue::try_from(signature).expect(ascii));
    }
    Ok(request)
}

/// Sends the request and reads the answer. The connection is driven here and not in a task of its own,
/// so that it ends with the call, however that ends.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    now: Timestamp,
    progress: &mut Progress,
) -> Result<Reply, OutboundError> {
    *progress = Progress::Sent;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(Unknown::Broken)?;
    let mut answer = pin!(async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let retry_after = retry_after(&head.headers, now);
        Ok(Reply { status: head.status, retry_after, body: first_bytes(body).await? })
    });
    let answered = tokio::select! {
        answered = answer.as_mut() => answered,
        // What went wrong with the connection is seen by the answer that was waited for, and what it
        // had received before is still to be read.
        _ = connection => answer.await,
    };
    answered.map_err(|cause: hyper::Error| Unknown::Broken(cause).into())
}

async fn first_bytes(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // A trailer is no part of the body.
        if let Ok(data) = frame?.into_data() {
            let room = MAX_REPLY_BYTES - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() >= room {
                break;
            }
        }
    }
    Ok(bytes.freeze())
}
