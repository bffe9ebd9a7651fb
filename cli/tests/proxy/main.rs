//! The proxy on real loopback sockets: scripted engines behind it, raw and hyper clients before it.
mod support;
mod tls;

mod admin;
mod bodies;
mod ends;
mod fields;
mod floods;
mod framing;
mod hostile;
mod identity;
mod life;
mod pool;
mod protocols;
mod routes;
mod shapes;
mod sockets;
mod wire;
