//! What each stream asks for: its path, its body and what it must decode to. Asked by `client` once a stream.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;

use super::{Digest, Prompt, Template};
use heartline::api::Api;

/// What one stream asks for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Target {
    /// The path and query, instead of the one in the URL.
    pub path: Option<PathAndQuery>,
    /// The request's body; empty for none.
    pub body: Bytes,
    /// What a stream that completes must have decoded to.
    pub expected: Option<Digest>,
}

impl Target {
    /// Creates a target with a body for the URL's own path.
    pub fn new(body: Bytes) -> Self {
        Self { body, ..Self::default() }
    }
}

/// Which stream asks for what.
#[derive(Clone)]
#[non_exhaustive]
pub enum Targets {
    /// All ask for the same.
    Same(Target),
    /// Stream `i` takes entry `i` modulo the list's length.
    List(Arc<[Target]>),
    /// Each asks an API with a prompt of its own.
    Prompt(Arc<Prompt>, Api),
    /// Each sends a template, filled in for it.
    Template(Arc<Template>),
    /// Stream `i` takes what the function returns for `i`. It is called once a stream, on a worker, and must not block.
    Each(Arc<dyn Fn(usize) -> Target + Send + Sync>),
}

impl Targets {
    /// Lets every stream send the same body to the URL's own path.
    pub fn same(body: Bytes) -> Self {
        Self::Same(Target::new(body))
    }

    /// Returns the target of one stream.
    pub fn of(&self, index: usize) -> Target {
        match self {
            Self::Same(target) => target.clone(),
            Self::List(list) => list[index % list.len()].clone(),
            Self::Prompt(prompt, api) => Target::new(prompt.body(*api, index)),
            Self::Template(template) => Target::new(template.body(index)),
            Self::Each(target_of) => target_of(index),
        }
    }
}

impl fmt::Debug for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(target) => f.debug_tuple("Same").field(target).finish(),
            Self::List(list) => f.debug_tuple("List").field(&list.len()).finish(),
            Self::Prompt(prompt, api) => f.debug_tuple("Prompt").field(prompt).field(api).finish(),
            Self::Template(template) => f.debug_tuple("Template").field(template).finish(),
            Self::Each(_) => f.debug_tuple("Each").finish_non_exhaustive(),
        }
    }
}
