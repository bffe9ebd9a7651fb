//! Which public types of the proxy are `Send`, `Sync`, `Unpin` and so on: part of the API, though nobody writes it down.

use std::error::Error as StdError;
use std::fmt::Debug;

use heartline_cli::proxy::{Config, Error, Handle, LiveStream, Proxy, State};
use static_assertions::assert_impl_all;

assert_impl_all!(Proxy: Send, Sync, Unpin, Debug);
assert_impl_all!(Handle: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(Config: Send, Sync, Unpin, Clone, Debug, PartialEq);
assert_impl_all!(State: Send, Sync, Unpin, Copy, Debug, PartialEq);
assert_impl_all!(LiveStream: Send, Sync, Unpin, Clone, Debug, PartialEq);
assert_impl_all!(Error: Send, Sync, Unpin, Debug, StdError);
