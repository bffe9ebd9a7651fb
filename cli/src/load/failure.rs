//! Why one stream did not live as asked. Client limits have kinds of their own, so that no server is blamed for them.

use std::borrow::Cow;
use std::io;

/// Why one stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// This client had no file left for a connection.
    ClientFiles,
    /// This client had no local port left for a connection.
    ClientPorts,
    /// This client's kernel had no memory for a connection.
    ClientMemory,
    /// The run ended before this stream was begun: the client was late.
    ClientLate,
    /// The run ended while the connection was being made; the end was this harness's own.
    ConnectUnfinished,
    /// The run ended before response headers came; the end was this harness's own.
    HeadersUnfinished,
    /// The server refused the connection.
    ConnectRefused,
    /// The connection could not be made for another reason.
    ConnectFailed,
    /// The server's certificate was not accepted, or TLS was not spoken.
    TlsFailed,
    /// The server does not offer HTTP/2.
    NoHttp2,
    /// The run ended before this stream of a closed loop had its turn.
    NotBegun,
    /// This harness cut the stream before its response began, as the hop it played would.
    CutBeforeHeaders,
    /// This harness cut the open stream, as the hop it played would.
    CutAfter,
    /// The stream told of an error as its API does.
    ErrorInStream,
    /// The body ended cleanly without the end that its API asks for.
    EndMissing,
    /// The response had a status other than 2xx.
    Status(u16),
    /// The connection was closed or reset before response headers came.
    ClosedBeforeHeaders,
    /// The stream was closed before its body's end.
    CutClosed,
    /// The stream was reset before its body's end.
    CutReset,
    /// What came instead of response headers was not HTTP.
    NotHttp,
    /// The body was not framed as HTTP.
    NotHttpBody,
    /// An event was longer than the decoder's bound.
    EventTooLong,
}

impl Failure {
    /// Returns the name under which the report counts this failure.
    pub fn kind(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::ClientFiles => "client_files",
            Self::ClientPorts => "client_ports",
            Self::ClientMemory => "client_memory",
            Self::ClientLate => "client_late",
            Self::ConnectUnfinished => "connect_unfinished",
            Self::HeadersUnfinished => "headers_unfinished",
            Self::ConnectRefused => "connect_refused",
            Self::ConnectFailed => "connect_failed",
            Self::TlsFailed => "tls_failed",
            Self::NoHttp2 => "no_http2",
            Self::NotBegun => "not_begun",
            Self::CutBeforeHeaders => "cut_before_headers",
            Self::CutAfter => "cut_after",
            Self::ErrorInStream => "error_in_stream",
            Self::EndMissing => "end_missing",
            Self::Status(code) => return Cow::Owned(format!("status_{code}")),
            Self::ClosedBeforeHeaders => "closed_before_headers",
            Self::CutClosed => "cut_closed",
            Self::CutReset => "cut_reset",
            Self::NotHttp => "not_http",
            Self::NotHttpBody => "not_http_body",
            Self::EventTooLong => "event_too_long",
        })
    }

    /// Tells whether a limit of this client was the cause, so that nothing is said about the server.
    pub fn is_client_limit(self) -> bool {
        matches!(self, Self::ClientFiles | Self::ClientPorts | Self::ClientMemory | Self::ClientLate)
    }

    /// Tells whether an open stream was ended before its body's end.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::CutClosed | Self::CutReset | Self::CutAfter)
    }

    /// Tells whether the stream failed before its response began.
    pub(super) fn is_before_open(self) -> bool {
        !matches!(
            self,
            Self::CutClosed
                | Self::CutReset
                | Self::CutAfter
                | Self::NotHttpBody
                | Self::EventTooLong
                | Self::ErrorInStream
                | Self::EndMissing
        )
    }

    /// Names the failure of a connection attempt.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Self::ClientPorts,
            io::ErrorKind::OutOfMemory => Self::ClientMemory,
            _ => match error.raw_os_error() {
                Some(code) if code == nix::libc::EMFILE || code == nix::libc::ENFILE => Self::ClientFiles,
                Some(code) if code == nix::libc::ENOBUFS => Self::ClientMemory,
                _ => Self::ConnectFailed,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_out_of_ports_or_files_blames_no_server() {
        for (code, failure) in [
            (nix::libc::EADDRNOTAVAIL, Failure::ClientPorts),
            (nix::libc::EADDRINUSE, Failure::ClientPorts),
            (nix::libc::EMFILE, Failure::ClientFiles),
            (nix::libc::ENFILE, Failure::ClientFiles),
            (nix::libc::ENOBUFS, Failure::ClientMemory),
        ] {
            let named = Failure::of_connect(&io::Error::from_raw_os_error(code));
            assert_eq!(named, failure);
            assert!(named.is_client_limit() && named.kind().starts_with("client_"), "{named:?}");
        }
        let refused = Failure::of_connect(&io::Error::from_raw_os_error(nix::libc::ECONNREFUSED));
        assert_eq!((refused.kind().as_ref(), refused.is_client_limit()), ("connect_refused", false));
        let timed_out = Failure::of_connect(&io::Error::from_raw_os_error(nix::libc::ETIMEDOUT));
        assert_eq!(timed_out, Failure::ConnectFailed);
    }

    #[test]
    fn only_an_open_stream_can_be_cut() {
        for failure in [Failure::CutClosed, Failure::CutReset, Failure::CutAfter] {
            assert!(failure.is_cut() && !failure.is_before_open());
        }
        for failure in [Failure::Status(524), Failure::ClosedBeforeHeaders, Failure::HeadersUnfinished] {
            assert!(!failure.is_cut() && failure.is_before_open());
        }
    }
}
