//! The scripted engine over real loopback sockets: every API, script, wait mode, override and end.
#[path = "sim/apis.rs"]
mod apis;
#[path = "sim/client.rs"]
mod client;
#[path = "sim/command.rs"]
mod command;
#[path = "sim/ends.rs"]
mod ends;
#[path = "sim/heartbeats.rs"]
mod heartbeats;
#[path = "sim/scripts.rs"]
mod scripts;
#[path = "sim/waits.rs"]
mod waits;
