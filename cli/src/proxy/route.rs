//! Which engine serves a request: a pure choice by path prefix and model. Asked by `exchange`.
//!
//! 1. Only engines count whose `paths` hold a prefix of the path, whole segments at a time; one without `paths` serves all.
//! 2. Of those, engines that take the model: their `models` name it, or they have none and take every model. Among them the
//!    longest prefix wins, then the closest model (its name, the longest beginning with a `*`, none), then the order.
//! 3. A model that none of them takes goes where `unknown_models` says; a request without a model (`/v1/models` has none,
//!    nor has a body that could not be read) where `no_model` says: to the first of the engines of step 1, or to the one
//!    named there if it is among them, or nowhere.

use std::cmp::Reverse;

use super::config::{Config, Fallback, Upstream};

/// The index of the engine for `path` (without the query) and `model`; `None` when no engine serves them.
pub(super) fn choose(config: &Config, path: &str, model: Option<&str>) -> Option<usize> {
    let serving = || {
        let all = config.upstreams.iter().enumerate();
        all.filter_map(|(index, upstream)| Some((index, upstream, prefix(upstream, path)?)))
    };
    let takers = serving().filter_map(|(index, upstream, prefix)| {
        let closeness = closeness(upstream, model)?;
        Some((Reverse((prefix, closeness)), index))
    });
    if let Some((_, index)) = takers.min() {
        return Some(index);
    }
    let fallback = if model.is_some() { &config.unknown_models } else { &config.no_model };
    match fallback {
        Fallback::First => serving().next().map(|(index, ..)| index),
        Fallback::Engine(name) => serving().find(|(_, upstream, _)| upstream.name == *name).map(|(index, ..)| index),
        Fallback::Refuse => None,
    }
}

/// Whether the choice for `path` can depend on the model, so that the body must be looked at first.
pub(super) fn needs_model(config: &Config, path: &str) -> bool {
    let longest = |named: fn(&Upstream) -> bool| {
        config.upstreams.iter().filter(|upstream| named(upstream)).filter_map(|upstream| prefix(upstream, path)).max()
    };
    // An engine that takes every model under a longer prefix comes before all that name models.
    let by_name = longest(|upstream| !upstream.models.is_empty());
    by_name.is_some() && by_name >= longest(|upstream| upstream.models.is_empty())
}

/// How long the longest of the engine's prefixes of `path` is; `None` when it does not serve the path.
fn prefix(upstream: &Upstream, path: &str) -> Option<usize> {
    if upstream.paths.is_empty() {
        return Some(0);
    }
    let prefixes = upstream.paths.iter().filter(|prefix| {
        path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    prefixes.map(String::len).max()
}

/// How closely the engine names `model`; `None` when it does not take it.
fn closeness(upstream: &Upstream, model: Option<&str>) -> Option<usize> {
    if upstream.models.is_empty() {
        return Some(0);
    }
    let model = model?;
    let named = upstream.models.iter().filter_map(|name| match name.strip_suffix('*') {
        None => (name == model).then_some(usize::MAX),
        Some(beginning) => model.starts_with(beginning).then_some(1 + beginning.len()),
    });
    named.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine a line: its name, its paths, its models.
    fn config(lines: &[(&str, &[&str], &[&str])]) -> Config {
        let url = http::Uri::from_static("http://127.0.0.1:1");
        let mut config = Config::single(url.clone());
        let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let engines = lines.iter().map(|(name, paths, models)| {
            let engine = Upstream::new(*name, url.clone());
            Upstream { paths: owned(paths), models: owned(models), ..engine }
        });
        config.upstreams = engines.collect();
        config
    }

    #[track_caller]
    fn assert_choice(config: &Config, path: &str, model: Option<&str>, expected: Option<&str>) {
        let chosen = choose(config, path, model).map(|index| config.upstreams[index].name.as_str());
        assert_eq!(chosen, expected, "{path} {model:?}");
    }

    #[test]
    fn one_engine_serves_everything() {
        let one = config(&[("engine", &[], &[])]);
        for (path, model) in [("/", None), ("/v1/chat/completions", Some("any")), ("*", None)] {
            assert_choice(&one, path, model, Some("engine"));
            assert!(!needs_model(&one, path));
        }
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_wins() {
        let paths = config(&[("v1", &["/v1"], &[]), ("chat", &["/x", "/v1/chat"], &[]), ("ollama", &["/api"], &[])]);
        assert_choice(&paths, "/v1", None, Some("v1"));
        assert_choice(&paths, "/v1/completions", Some("m"), Some("v1"));
        assert_choice(&paths, "/v1/chat/completions", Some("m"), Some("chat"));
        assert_choice(&paths, "/v1/chats", None, Some("v1"));
        assert_choice(&paths, "/api/chat", None, Some("ollama"));
        assert_choice(&paths, "/v10", None, None);
        assert_choice(&paths, "/", None, None);
    }

    #[test]
    fn a_model_goes_to_the_engine_that_names_it_most_closely() {
        let models = config(&[
            ("rest", &[], &[]),
            ("llama", &[], &["llama-*"]),
            ("small", &[], &["llama-3-*", "phi"]),
            ("exact", &[], &["llama-3-8b"]),
        ]);
        assert_choice(&models, "/v1/completions", Some("llama-2"), Some("llama"));
        assert_choice(&models, "/v1/completions", Some("llama-3-70b"), Some("small"));
        assert_choice(&models, "/v1/completions", Some("llama-3-8b"), Some("exact"));
        assert_choice(&models, "/v1/completions", Some("phi"), Some("small"));
        assert_choice(&models, "/v1/completions", Some("phi-3"), Some("rest"));
        assert_choice(&models, "/v1/models", None, Some("rest"));
        assert!(needs_model(&models, "/v1/completions"));
    }

    #[test]
    fn an_unknown_model_and_a_list_of_models_go_where_the_settings_say() {
        let mut named = config(&[("a", &[], &["x"]), ("b", &["/v1"], &["y"]), ("c", &["/api"], &["z"])]);
        assert_choice(&named, "/v1/completions", Some("unknown"), Some("a"));
        assert_choice(&named, "/v1/models", None, Some("a"));
        named.unknown_models = Fallback::Refuse;
        named.no_model = Fallback::Engine("b".to_owned());
        assert_choice(&named, "/v1/completions", Some("unknown"), None);
        assert_choice(&named, "/v1/models", None, Some("b"));
        // The named engine does not serve this path.
        assert_choice(&named, "/api/tags", None, None);
        assert_choice(&named, "/v1/completions", Some("x"), Some("a"));
    }

    #[test]
    fn an_engine_for_every_model_under_a_shorter_path_comes_before_the_fallback() {
        let mut mixed = config(&[("named", &["/v1"], &["x"]), ("rest", &[], &[])]);
        mixed.unknown_models = Fallback::Refuse;
        assert_choice(&mixed, "/v1/completions", Some("y"), Some("rest"));
        assert_choice(&mixed, "/v1/completions", Some("x"), Some("named"));
    }

    #[test]
    fn the_body_is_looked_at_only_where_the_model_matters() {
        let mixed =
            config(&[("every", &["/v1/embeddings"], &[]), ("named", &["/v1"], &["x"]), ("api", &["/api"], &[])]);
        assert!(needs_model(&mixed, "/v1/chat/completions"));
        assert!(!needs_model(&mixed, "/v1/embeddings"));
        assert!(!needs_model(&mixed, "/api/chat"));
        assert!(!needs_model(&mixed, "/else"));
        assert_choice(&mixed, "/v1/embeddings", Some("x"), Some("every"));
    }
}
