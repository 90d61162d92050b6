//! A small HTTP client for the commands, the demo, the load generator and the tests: one kept
//! connection, one request at a time, no retries, so that what it counts is what happened.

use std::io;
use std::net::SocketAddr;

use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// Why there is no answer. What became of the request is unknown, unless it is `Connect`.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {cause}")]
    Connect { address: SocketAddr, cause: io::Error },
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("answered {status}: {text}")]
    Refused { status: StatusCode, text: String },
}

/// An answer, read whole.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON, when the status is one of success.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] with what the server said, or [`ClientError::Json`].
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        if !self.status.is_success() {
            let text = String::from_utf8_lossy(&self.body).into_owned();
            return Err(ClientError::Refused { status: self.status, text });
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

/// One connection to a server, opened when it is first needed and again after it was closed.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    host: HeaderValue,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let host = HeaderValue::try_from(address.to_string())
            .expect("an address is written in ASCII without spaces");
        Self::of_host(address, host)
    }

    /// A client of the server that is called `host` and has this address.
    pub fn of_host(address: SocketAddr, host: HeaderValue) -> Self {
        Self { address, host, open: None }
    }

    /// Sends `request`, whose URI is a path, and reads the answer.
    ///
    /// # Errors
    ///
    /// [`ClientError::Connect`] or [`ClientError::Http`]; an answer of any status is none.
    pub async fn send(&mut self, mut request: Request<Full<Bytes>>) -> Result<Answer, ClientError> {
        request.headers_mut().insert(HOST, self.host.clone());
        let mut sender = self.ready().await?;
        let response = sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        self.open = Some(sender);
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Sends a request without a body.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn call(&mut self, method: Method, path: &str) -> Result<Answer, ClientError> {
        self.send(request(method, path, Full::default())).await
    }

    /// Sends `value` as JSON.
    ///
    /// # Errors
    ///
    /// As [`Client::send`], and when `value` is not JSON.
    pub async fn post(
        &mut self,
        path: &str,
        value: &impl Serialize,
    ) -> Result<Answer, ClientError> {
        let json = serde_json::to_vec(value)?;
        let mut request = request(Method::POST, path, Full::from(json));
        let json_type = HeaderValue::from_static("application/json");
        request.headers_mut().insert(CONTENT_TYPE, json_type);
        self.send(request).await
    }

    async fn ready(&mut self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        if let Some(mut sender) = self.open.take()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let address = self.address;
        let connect = |cause| ClientError::Connect { address, cause };
        let stream = TcpStream::connect(address).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // An error of the connection is seen by the request that was on it.
            let _ = connection.await;
        });
        Ok(sender)
    }
}

fn request(method: Method, path: &str, body: Full<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("callers give paths that are written in ASCII");
    request
}
