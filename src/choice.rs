//! Which form suits which client? Told by the request: `Form::auto`.
//!
//! No form suits all clients, measured with about a hundred of them (`docs/forms.md`): a blank line is an error to
//! openai-go below 3.43 and an event to some browser libraries, a comment breaks Gemini's SDKs and many hand-written
//! readers. The first rule that matches decides.

use http::Method;
use http::header::{ACCEPT, USER_AGENT};
use http::request::Parts;

use crate::api::{Api, Endpoint};
use crate::heartbeat::Form;

impl Form {
    /// The form that suits the client behind a request, told by its method, path and headers (table in `docs/forms.md`);
    /// [`Form::newline_between`] where nothing is known about it.
    #[must_use]
    pub fn auto(request: &Parts) -> Self {
        let header = |name: &str| request.headers.get(name).map(http::HeaderValue::as_bytes);
        // Before the browsers: Gemini's SDK also runs in them.
        let by_client = Api::ALL.iter().find(|api| api.client_header().is_some_and(|name| header(name).is_some()));
        let by_path = || Endpoint::of_path(request.uri.path(), request.uri.query()).map(Endpoint::api);
        if let Some(form) = by_client.copied().or_else(by_path).and_then(Api::default_form) {
            return form;
        }
        let agent = header(USER_AGENT.as_str()).unwrap_or_default();
        match Kit::of(header("x-stainless-lang"), header("x-stainless-package-version"), agent) {
            Some(Kit::OldGo) => return Self::comment(),
            Some(Kit::Other) => return Self::newline(),
            None => {}
        }
        // Node's own fetch sends `sec-fetch-mode` too, but no page it comes from.
        let is_browser = header("sec-fetch-site").is_some() || agent.starts_with(b"Mozilla/");
        // What an `EventSource` asks with, in a browser or not: it reads comments, and some count blank lines.
        let asks_for_events = request.method == Method::GET && header(ACCEPT.as_str()) == Some(b"text/event-stream");
        if is_browser || asks_for_events { Self::comment() } else { Self::newline_between() }
    }
}

/// A known SDK.
enum Kit {
    /// For Go, of a version that fails on a blank line.
    OldGo,
    Other,
}

impl Kit {
    fn of(lang: Option<&[u8]>, version: Option<&[u8]>, agent: &[u8]) -> Option<Self> {
        let agent_version = agent.strip_prefix(b"OpenAI/Go ");
        let is_go = match lang {
            Some(lang) => lang.eq_ignore_ascii_case(b"go"),
            None => agent_version.is_some(),
        };
        if is_go {
            let version = version.or(agent_version).and_then(major_and_minor)?;
            return Some(if version < GO_BLANK_LINES_SINCE { Self::OldGo } else { Self::Other });
        }
        let known = |lang: &[u8]| KNOWN_LANGS.iter().any(|known| lang.eq_ignore_ascii_case(known));
        (lang.is_some_and(known) || KNOWN_AGENTS.iter().any(|known| agent.starts_with(known))).then_some(Self::Other)
    }
}

fn major_and_minor(version: &[u8]) -> Option<(u32, u32)> {
    let version = std::str::from_utf8(version).ok()?.trim();
    let mut parts = version.strip_prefix('v').unwrap_or(version).split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The first version of openai-go that takes a blank line.
const GO_BLANK_LINES_SINCE: (u32, u32) = (3, 43);
/// The other languages of these SDKs that were measured: a blank line suits them.
const KNOWN_LANGS: [&[u8]; 2] = [b"python", b"js"];
/// How the same SDKs name themselves where the headers above were removed.
const KNOWN_AGENTS: [&[u8]; 6] = [
    b"OpenAI/Python",
    b"AsyncOpenAI/Python",
    b"OpenAI/JS",
    b"Anthropic/Python",
    b"AsyncAnthropic/Python",
    b"Anthropic/JS",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn form(path: &str, headers: &[(&str, &str)]) -> String {
        form_of("POST", path, headers)
    }

    fn form_of(method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Form::auto(&request.body(()).unwrap().into_parts().0).to_string()
    }

    const CHAT: &str = "/v1/chat/completions";

    #[test]
    fn unknown_clients_get_a_blank_line_and_only_between_events() {
        assert_eq!(form(CHAT, &[]), "newline-between");
        assert_eq!(form(CHAT, &[("user-agent", "curl/8.9")]), "newline-between");
    }

    #[test]
    fn gemini_gets_a_blank_line_and_only_between_events_also_in_a_browser() {
        let browser = ("sec-fetch-site", "cross-site");
        assert_eq!(form("/v1beta/models/g:streamGenerateContent?alt=sse", &[browser]), "newline-between");
        assert_eq!(form(CHAT, &[("x-goog-api-client", "x"), browser]), "newline-between");
    }

    #[test]
    fn anthropic_gets_its_ping() {
        for path in ["/v1/messages", "/anthropic/v1/messages/", "/v1/messages?beta=true"] {
            assert_eq!(form(path, &[("x-stainless-lang", "go")]), "ping", "{path}");
        }
        assert_eq!(form("/v1/messages/count_tokens", &[]), "newline-between");
    }

    #[test]
    fn old_go_gets_a_comment_and_new_go_a_blank_line() {
        let go = ("x-stainless-lang", "go");
        for (version, expected) in [
            ("1.12.0", "comment"),
            ("3.42.9", "comment"),
            ("3.43.0", "newline"),
            ("4.0.1", "newline"),
            ("v3.42", "comment"),
            ("new", "newline-between"),
            ("", "newline-between"),
        ] {
            assert_eq!(form(CHAT, &[go, ("x-stainless-package-version", version)]), expected, "{version}");
        }
        assert_eq!(form(CHAT, &[("user-agent", "OpenAI/Go 1.12.0")]), "comment");
        assert_eq!(form(CHAT, &[("user-agent", "OpenAI/Go 3.50.0")]), "newline");
        assert_eq!(form(CHAT, &[go, ("user-agent", "Mozilla/5.0")]), "comment");
    }

    #[test]
    fn known_kits_go_before_the_browser_they_run_in() {
        let browser = ("user-agent", "Mozilla/5.0 (X11)");
        assert_eq!(form(CHAT, &[("x-stainless-lang", "js"), browser]), "newline");
        assert_eq!(form(CHAT, &[("x-stainless-lang", "cobol"), browser]), "comment");
        assert_eq!(form(CHAT, &[("user-agent", "OpenAI/Python 2.54.0")]), "newline");
    }

    #[test]
    fn browsers_get_a_comment() {
        // Over HTTP to another machine a browser sends no `sec-fetch` field at all.
        assert_eq!(
            form(CHAT, &[("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"), ("origin", "http://a.example")]),
            "comment"
        );
        assert_eq!(form(CHAT, &[("sec-fetch-mode", "cors"), ("sec-fetch-site", "same-origin")]), "comment");
    }

    #[test]
    fn nodes_fetch_is_no_browser() {
        // What Node 20 sends, and a library that names itself.
        for agent in ["node", "Deno/2.5.0", "my-app/1.0"] {
            let fields =
                [("accept", "*/*"), ("accept-language", "*"), ("sec-fetch-mode", "cors"), ("user-agent", agent)];
            assert_eq!(form(CHAT, &fields), "newline-between", "{agent}");
        }
    }

    #[test]
    fn who_gets_events_as_an_event_source_does_reads_comments() {
        let events = ("accept", "text/event-stream");
        assert_eq!(form_of("GET", "/events", &[events, ("sec-fetch-mode", "cors")]), "comment");
        assert_eq!(form_of("GET", "/events", &[events, ("user-agent", "python-requests/2.34.2")]), "comment");
        assert_eq!(form_of("POST", CHAT, &[events]), "newline-between");
        assert_eq!(form_of("GET", "/events", &[("accept", "*/*")]), "newline-between");
    }
}
