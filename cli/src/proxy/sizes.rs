//! What each stream is made of, in bytes: a test that fails when a type grows that thousands of streams hold. For tests only.

use super::departure::Departure;
use super::exchange::{Client, serve};
use super::forward::Forward;
use super::outlet::Outlet;
use super::relay::{EngineBody, Relay};
use super::sending::Sending;
use super::server::connection;
use super::signal::Signal;
use super::socket::Socket;
use super::table::Live;
use super::wire::Wire;

/// What the future of a function takes, without calling it.
fn returned<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn what_lives_as_long_as_a_stream_does_not_grow() {
    let table = [
        // For each connection.
        ("the task of a connection", returned(connection), 1_024),
        ("Client", size_of::<Client>(), 112),
        ("Departure", size_of::<Departure>(), 56),
        ("Signal", size_of::<Signal>(), 32),
        // For each stream beside it.
        ("Outlet", size_of::<Outlet<Socket>>(), 104),
        ("Relay", size_of::<Relay>(), 208),
        ("EngineBody", size_of::<EngineBody>(), 72),
        ("Wire", size_of::<Wire>(), 128),
        ("Live", size_of::<Live>(), 160),
        // Until the answer begins.
        ("an exchange that waits for its engine", returned(serve), 3_072),
        // Until the request is sent.
        ("Sending", size_of::<Sending>(), 88),
        ("Forward", size_of::<Forward>(), 368),
    ];
    let grown: Vec<_> = table.iter().filter(|(_, bytes, bytes_max)| bytes > bytes_max).collect();
    assert!(grown.is_empty(), "name, bytes, bytes allowed: {grown:#?}");
}
