//! What the streams of a run are asked with: one body, a template filled in for each stream, or the lines of a file.
//! Used by whoever fills in [`Settings`](super::Settings).

use std::sync::Arc;

use bytes::Bytes;
use http::uri::PathAndQuery;
use serde_json::Value;

use super::seed::Seed;
use super::{LoadError, Target, Targets};
use heartline::api::{Api, Question};

/// A prompt, and what goes with it into a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Prompt {
    /// How many words the prompt has. They follow from `seed` and the stream's number, so that no cache of the server
    /// answers twice from one, and two runs ask the same.
    pub words: usize,
    /// The model's name.
    pub model: String,
    /// Whether the answer is to be a stream.
    pub stream: Streaming,
    /// The most tokens of the answer; `None` leaves it to the server.
    pub tokens_max: Option<u32>,
    /// What the words follow from.
    pub seed: u64,
}

/// Whether an answer is asked for as a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Streaming {
    /// `"stream": true`.
    #[default]
    On,
    /// `"stream": false`.
    Off,
}

impl Prompt {
    /// Creates a prompt of so many words for a model, answered as a stream.
    pub fn new(words: usize, model: impl Into<String>) -> Self {
        Self { words, model: model.into(), stream: Streaming::On, tokens_max: None, seed: 0 }
    }

    /// Returns the prompt of one stream.
    pub fn text(&self, index: usize) -> String {
        let mut seed = Seed::new(self.seed.wrapping_add(index as u64), PROMPT);
        let mut text = String::with_capacity(self.words * 7);
        for word in 0..self.words {
            if word > 0 {
                text.push(' ');
            }
            text.push_str(WORDS[seed.below(WORDS.len())]);
        }
        text
    }

    /// Returns the body that asks an API with this prompt.
    pub fn body(&self, api: Api, index: usize) -> Bytes {
        let text = self.text(index);
        Bytes::from(api.request_body(&self.question(&text)))
    }

    /// Returns the path and query that ask an API with this prompt.
    pub fn path(&self, api: Api) -> String {
        api.request_path(&self.question(""))
    }

    fn question<'a>(&'a self, text: &'a str) -> Question<'a> {
        let mut question = Question::new(&self.model, text);
        (question.is_streamed, question.tokens_max) = (self.is_streamed(), self.tokens_max);
        question
    }

    /// Returns targets that ask an API with a prompt of its own for each stream.
    pub fn targets(self, api: Api) -> Targets {
        Targets::Prompt(Arc::new(self), api)
    }

    fn is_streamed(&self) -> bool {
        self.stream == Streaming::On
    }
}

/// A body with places that are filled in for each stream: `{{prompt}}`, `{{model}}`, `{{stream}}`, `{{tokens}}` and
/// `{{index}}`. What goes between quotes is escaped as JSON asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template {
    text: String,
    prompt: Prompt,
}

impl Template {
    /// Checks a template.
    ///
    /// # Errors
    ///
    /// When it names a place that there is none of.
    pub fn new(text: impl Into<String>, prompt: Prompt) -> Result<Self, LoadError> {
        let text = text.into();
        for (at, _) in text.match_indices("{{") {
            let name = text[at + 2..].split("}}").next().unwrap_or_default();
            if !PLACES.contains(&name) {
                let name: String = name.chars().take(20).collect();
                return Err(LoadError::config(format!(
                    "the body names {{{{{name}}}}}; known are {}",
                    PLACES.map(|place| format!("{{{{{place}}}}}")).join(", ")
                )));
            }
        }
        Ok(Self { text, prompt })
    }

    /// Tells whether a body has a place to fill in.
    pub fn has_places(text: &str) -> bool {
        PLACES.iter().any(|place| text.contains(&format!("{{{{{place}}}}}")))
    }

    /// Returns the body of one stream.
    pub fn body(&self, index: usize) -> Bytes {
        let mut body = String::with_capacity(self.text.len() + self.prompt.words * 7);
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once("{{") {
            body.push_str(before);
            let (name, after) = after.split_once("}}").unwrap_or((after, ""));
            body.push_str(&self.value(name, index));
            rest = after;
        }
        body.push_str(rest);
        Bytes::from(body)
    }

    /// Returns targets with a body of its own for each stream.
    pub fn targets(self) -> Targets {
        Targets::Template(Arc::new(self))
    }

    fn value(&self, name: &str, index: usize) -> String {
        match name {
            "prompt" => self.prompt.text(index),
            "model" => {
                let quoted = Value::from(self.prompt.model.as_str()).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            "stream" => self.prompt.is_streamed().to_string(),
            "tokens" => self.prompt.tokens_max.unwrap_or(TOKENS).to_string(),
            _ => index.to_string(),
        }
    }
}

/// Reads the targets of a JSONL file: a line is a body, or `{"path": …, "body": …}` with either; streams take them in
/// turn.
///
/// # Errors
///
/// When a line is no JSON, its path is none, or there is no line.
pub fn targets_of_lines(text: &str) -> Result<Targets, LoadError> {
    let mut list = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refused = |why: String| LoadError::config(format!("line {} of the bodies {why}", number + 1));
        let value: Value = serde_json::from_str(line).map_err(|error| refused(format!("is no JSON: {error}")))?;
        let wrapped = value
            .as_object()
            .is_some_and(|object| !object.is_empty() && object.keys().all(|key| key == "path" || key == "body"));
        let mut target = Target::default();
        if wrapped {
            if let Some(path) = value.get("path") {
                let path = path.as_str().and_then(|path| path.parse::<PathAndQuery>().ok());
                target.path = Some(path.ok_or_else(|| refused("has a path that is none".to_owned()))?);
            }
            target.body = match value.get("body") {
                None => Bytes::new(),
                Some(Value::String(text)) => Bytes::from(text.clone()),
                Some(body) => Bytes::from(body.to_string()),
            };
        } else {
            target.body = Bytes::copy_from_slice(line.trim().as_bytes());
        }
        list.push(target);
    }
    if list.is_empty() {
        return Err(LoadError::config("the file of bodies has no line; write one JSON body a line"));
    }
    Ok(Targets::List(list.into()))
}

/// What a template may name.
const PLACES: [&str; 5] = ["prompt", "model", "stream", "tokens", "index"];

/// What `{{tokens}}` stands for when nobody said.
const TOKENS: u32 = 256;

/// What the seed is mixed with, so that arrivals and prompts are drawn apart.
const PROMPT: u64 = 0x7072_6f6d_7074_2121;

/// Common words, so that a tokenizer makes about one token of each.
const WORDS: [&str; 64] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "program", "question", "work", "number", "night", "point", "home", "water", "room", "mother", "area", "money",
    "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side",
    "kind", "head", "house", "service", "friend", "father", "power", "hour", "game", "line", "end", "member", "law",
    "car",
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_follows_from_the_seed_and_the_streams_number() {
        let prompt = Prompt::new(50, "m");
        assert_eq!(prompt.text(3), prompt.text(3));
        assert_ne!(prompt.text(3), prompt.text(4));
        assert_eq!(prompt.text(3).split(' ').count(), 50);
        let other = Prompt { seed: 9, ..prompt.clone() };
        assert_ne!(other.text(3), prompt.text(3));
    }

    #[test]
    fn each_api_is_asked_in_its_own_fields() {
        let mut prompt = Prompt::new(2, "m\"1");
        prompt.tokens_max = Some(7);
        for (api, asked, bound) in [
            (Api::OPENAI_CHAT, "/messages/0/content", "/max_tokens"),
            (Api::OPENAI_COMPLETIONS, "/prompt", "/max_tokens"),
            (Api::RESPONSES, "/input", "/max_output_tokens"),
            (Api::ANTHROPIC, "/messages/0/content", "/max_tokens"),
            (Api::OLLAMA, "/messages/0/content", "/options/num_predict"),
        ] {
            let body: Value = serde_json::from_slice(&prompt.body(api, 0)).unwrap();
            assert_eq!(body.pointer(asked).and_then(Value::as_str), Some(prompt.text(0).as_str()), "{api:?}");
            assert_eq!(body.pointer(bound), Some(&json!(7)), "{api:?}");
            assert_eq!((&body["model"], &body["stream"]), (&json!("m\"1"), &json!(true)));
        }
    }

    #[test]
    fn a_template_is_filled_in_for_each_stream() {
        let text = r#"{"model":"{{model}}","q":"{{prompt}}","stream":{{stream}},"n":{{index}},"max":{{tokens}}}"#;
        let template = Template::new(text, Prompt::new(3, "m\"1")).unwrap();
        let body: Value = serde_json::from_slice(&template.body(5)).unwrap();
        assert_eq!(body["model"], "m\"1");
        assert_eq!((&body["stream"], &body["n"], &body["max"]), (&json!(true), &json!(5), &json!(256)));
        assert_ne!(template.body(5), template.body(6));
        let refused = Template::new("{{promt}}", Prompt::new(3, "m")).unwrap_err();
        assert!(refused.to_string().contains("{{promt}}; known are {{prompt}}"), "{refused}");
    }

    #[test]
    fn lines_are_bodies_with_or_without_a_path() {
        let text = "{\"a\": 1}\n\n{\"path\":\"/b?c\",\"body\":{\"d\":2}}\n{\"path\":\"/e\"}\n";
        let targets = targets_of_lines(text).unwrap();
        let target = |index| targets.of(index);
        assert_eq!((target(0).body, target(0).path), (Bytes::from("{\"a\": 1}"), None));
        assert_eq!(
            (target(4).body, target(4).path.unwrap().as_str().to_owned()),
            (Bytes::from("{\"d\":2}"), "/b?c".to_owned())
        );
        assert!(target(2).body.is_empty());
        assert!(targets_of_lines("{}\n{").unwrap_err().to_string().contains("line 2"));
        assert!(targets_of_lines("\n").unwrap_err().to_string().contains("no line"));
    }
}
