//! The arguments of `heartline load` that say who is asked, how, and for what.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use heartline::api::Api;
use heartline_cli::load::{Prompt, Protocol, Settings, Streaming, Target, Targets, Template, Trust, targets_of_lines};
use heartline_cli::values;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};

/// Who is asked, how, and for what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Targets")]
pub(crate) struct TargetArgs {
    /// Where the streams come from [default: an engine started for this run].
    #[arg(value_name = "URL", value_parser = values::url)]
    pub(crate) url: Option<Uri>,
    /// Whose API it is: asks its path where the URL has none, knows its ends, errors and pings
    /// (openai-chat, openai-completions, responses, anthropic, ollama, ollama-generate, gemini, llama-cpp, sglang, tgi,
    /// triton, events).
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<Api>,
    /// Speak HTTP/2: many streams on a connection, without asking over http, by ALPN over https.
    #[arg(long)]
    pub(crate) http2: bool,
    /// The most streams on one HTTP/2 connection; fewer where the server allows fewer.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = values::count)]
    pub(crate) streams_per_connection: usize,
    /// A PEM file of authorities to believe over https, instead of this machine's.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Method of every request [default: GET, with a body POST].
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    /// A header of every request, as 'name: value'; may be given several times.
    #[arg(long = "header", value_name = "HEADER", value_parser = values::field)]
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Send the token in this environment variable, as 'authorization: Bearer …'.
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) bearer_env: Option<String>,
    /// Body of every request, or a file with it as '@FILE'; JSON unless a header says otherwise. {{prompt}}, {{model}},
    /// {{stream}}, {{tokens}} and {{index}} are filled in for each stream.
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// A file with one JSON body a line, or {"path": …, "body": …}; streams take them in turn.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub(crate) bodies: Option<PathBuf>,
    /// Words of the prompt that --api, or {{prompt}} in a body, asks with; drawn from --seed for each stream.
    #[arg(long, value_name = "COUNT", default_value = "100", value_parser = values::count)]
    pub(crate) prompt_words: usize,
    /// The model's name, for --api or {{model}} in a body.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) model: String,
    /// The most tokens of an answer, for --api or {{tokens}} in a body.
    #[arg(long, value_name = "COUNT", value_parser = values::count)]
    pub(crate) max_tokens: Option<usize>,
    /// Ask for the answer in one piece instead of a stream, for --api or {{stream}} in a body.
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// A local address to connect from; may be given several times, for more ports.
    #[arg(long = "source-ip", value_name = "ADDRESS")]
    pub(crate) source_ips: Vec<IpAddr>,
}

impl TargetArgs {
    /// Puts the arguments into settings; their URL is taken where these name none.
    ///
    /// # Errors
    ///
    /// One line that says what cannot be used.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), String> {
        let url = self.url.clone().unwrap_or_else(|| settings.url.clone());
        settings.url = match self.api {
            Some(api) if matches!(url.path(), "" | "/") && url.query().is_none() => {
                at_path(&url, &self.prompt(0).path(api))?
            }
            _ => url,
        };
        settings.api = self.api;
        if self.http2 {
            settings.protocol = Protocol::Http2 { streams_per_connection: self.streams_per_connection };
        }
        if let Some(ca) = &self.ca {
            settings.trust = Trust::Authority(ca.clone());
        }
        settings.source_ips.clone_from(&self.source_ips);
        let targets = self.targets(settings.seed)?;
        settings.method = self.method.clone().unwrap_or(if targets.is_some() { Method::POST } else { Method::GET });
        settings.headers = self.headers()?;
        if let Some(targets) = targets {
            settings.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            settings.targets = targets;
        }
        Ok(())
    }

    /// Returns what the streams ask with; `None` for requests without a body.
    fn targets(&self, seed: u64) -> Result<Option<Targets>, String> {
        let prompt = self.prompt(seed);
        if let Some(path) = &self.bodies {
            let text =
                std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            return targets_of_lines(&text).map(Some).map_err(|error| error.to_string());
        }
        let Some(body) = self.body.as_deref().map(body).transpose()? else {
            return Ok(self.api.map(|api| prompt.targets(api)));
        };
        match std::str::from_utf8(&body) {
            Ok(text) if Template::has_places(text) => {
                let template = Template::new(text, prompt).map_err(|error| error.to_string())?;
                Ok(Some(Targets::Template(Arc::new(template))))
            }
            _ => Ok(Some(Targets::Same(Target::new(body)))),
        }
    }

    fn prompt(&self, seed: u64) -> Prompt {
        let mut prompt = Prompt::new(self.prompt_words, &self.model);
        prompt.seed = seed;
        prompt.tokens_max = self.max_tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        if self.no_stream {
            prompt.stream = Streaming::Off;
        }
        prompt
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        if let Some(variable) = &self.bearer_env {
            let token = std::env::var(variable)
                .map_err(|_| format!("the environment variable {variable} holds no token; export it first"))?;
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))
                .map_err(|_| format!("the token in {variable} holds a character that no header can"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
            if let Some(name) = self.api.and_then(Api::key_header) {
                // The API's own name for it; gateways look at the other.
                let mut key = HeaderValue::try_from(token.trim()).map_err(|error| error.to_string())?;
                key.set_sensitive(true);
                headers.entry(name).or_insert(key);
            }
        }
        for (name, value) in self.api.map_or(&[][..], Api::request_headers) {
            headers.entry(*name).or_insert(HeaderValue::from_static(value));
        }
        Ok(headers)
    }
}

fn at_path(url: &Uri, path: &str) -> Result<Uri, String> {
    let refused = |error: http::Error| format!("{url} cannot be asked at {path}: {error}");
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(path.parse().map_err(|error: http::uri::InvalidUri| refused(error.into()))?);
    Uri::from_parts(parts).map_err(|error| refused(error.into()))
}

/// Reads the body, from a file after `@`.
fn body(text: &str) -> Result<Bytes, String> {
    match text.strip_prefix('@') {
        None => Ok(Bytes::from(text.to_owned())),
        Some(path) => std::fs::read(path).map(Bytes::from).map_err(|error| format!("{path} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        targets: TargetArgs,
    }

    fn applied(line: &[&str]) -> Result<Settings, String> {
        let args = Cli::try_parse_from([&["load"], line].concat()).map_err(|error| error.to_string())?.targets;
        let mut settings = Settings::new("http://127.0.0.1:9/".parse().unwrap());
        args.apply(&mut settings)?;
        Ok(settings)
    }

    #[test]
    fn a_body_is_posted_as_json_unless_told_otherwise() {
        assert_eq!(applied(&[]).unwrap().method, Method::GET);
        let settings = applied(&["127.0.0.1:80/v1", "--body", "{}"]).unwrap();
        assert_eq!(settings.url, "http://127.0.0.1:80/v1");
        assert_eq!(settings.method, Method::POST);
        assert_eq!(settings.headers[CONTENT_TYPE], "application/json");
        let line = ["x", "--body", "a", "--header", "Content-Type: text/plain", "--method", "PUT"];
        let settings = applied(&line).unwrap();
        assert_eq!(settings.method, Method::PUT);
        assert_eq!(settings.headers[CONTENT_TYPE], "text/plain");
    }

    #[test]
    fn an_api_asks_its_own_path_with_a_prompt_for_each_stream() {
        let settings = applied(&["https://example.org", "--api", "openai-chat", "--model", "m", "--http2"]).unwrap();
        assert_eq!(settings.url, "https://example.org/v1/chat/completions");
        assert_eq!(settings.protocol, Protocol::Http2 { streams_per_connection: 100 });
        let bodies = [0, 1].map(|index| settings.targets.of(index).body);
        assert_ne!(bodies[0], bodies[1]);
        assert!(bodies[0].starts_with(b"{"));
        let settings = applied(&["http://h/own", "--api", "anthropic"]).unwrap();
        assert_eq!(settings.url.path(), "/own");
        assert_eq!(settings.headers["anthropic-version"], "2023-06-01");
        assert!(applied(&["--api", "gpt"]).unwrap_err().contains("openai-chat"));
    }

    #[test]
    fn an_api_whose_path_names_the_model_is_asked_there() {
        let gemini = |more: &[&str]| applied(&[&["https://h", "--api", "gemini"], more].concat());
        let url = |more| gemini(more).unwrap().url.path_and_query().unwrap().as_str().to_owned();
        assert_eq!(url(&["--model", "g-1"]), "/v1beta/models/g-1:streamGenerateContent?alt=sse");
        assert_eq!(url(&["--model", "g-1", "--no-stream"]), "/v1beta/models/g-1:generateContent");
        assert!(gemini(&["--model", "a b"]).unwrap_err().contains("cannot be asked at /v1beta/models/a b"));
    }

    #[test]
    fn a_template_is_told_from_a_body() {
        let filled = applied(&["--body", "{\"n\":{{index}}}"]).unwrap().targets.of(3).body;
        assert_eq!(filled, "{\"n\":3}");
        let plain = applied(&["--body", "{{}}"]).unwrap().targets.of(3).body;
        assert_eq!(plain, "{{}}");
        assert!(applied(&["--body", "{{index}} {{nope}}"]).unwrap_err().contains("{{nope}}"));
    }

    #[test]
    fn what_does_not_parse_says_what_to_write() {
        assert!(body("@/nonexistent").unwrap_err().starts_with("/nonexistent cannot be read: "));
        assert!(applied(&["--bearer-env", "HEARTLINE_NO_SUCH"]).unwrap_err().contains("HEARTLINE_NO_SUCH"));
    }
}
