//! Stand-in for the crate's error until the core arrives.

/// Says what is wrong with a setting.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
