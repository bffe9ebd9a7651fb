//! How `serde` is given what [`values`](crate::values) reads. Used by `layer`.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::values;

/// A value that a file gives as text, and a plain number where that has one meaning.
pub(super) trait Written: Sized {
    /// What to write, after "expected".
    const EXPECTED: &'static str;

    /// Reads the text.
    fn read(text: &str) -> Result<Self, String>;

    /// Reads a number; refused unless the kind of value has no unit.
    fn number(number: u64) -> Result<Self, String> {
        Self::read(&number.to_string())
    }
}

impl Written for Duration {
    const EXPECTED: &'static str = "a length of time such as \"30s\"";

    fn read(text: &str) -> Result<Self, String> {
        values::duration(text)
    }
}

/// Bytes in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size(pub(super) usize);

impl Written for Size {
    const EXPECTED: &'static str = "a size such as \"64KiB\"";

    fn read(text: &str) -> Result<Self, String> {
        values::size(text).map(Self)
    }
}

/// How many, in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count(pub(super) usize);

impl Written for Count {
    const EXPECTED: &'static str = "a count such as 200 or \"10k\"";

    fn read(text: &str) -> Result<Self, String> {
        values::count(text).map(Self)
    }
}

/// Deserializes any [`Written`] value.
pub(super) fn written<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Reader(PhantomData))
}

/// Makes a [`Written`] value usable where serde wants a type: inside an `Option` or a list.
pub(super) struct Read<T>(pub(super) T);

impl<'de, T: Written> Deserialize<'de> for Read<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        written(deserializer).map(Self)
    }
}

struct Reader<T>(PhantomData<T>);

impl<T: Written> Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let number = u64::try_from(number).map_err(|_| E::custom(format!("{number} is below zero")))?;
        T::number(number).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::number(number).map_err(E::custom)
    }
}
