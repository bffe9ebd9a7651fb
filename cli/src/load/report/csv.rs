//! The report's figures as two columns that a spreadsheet or `join` reads: the name of each, as a path of the JSON, and
//! its value.

use serde_json::Value;

use super::Report;

impl Report {
    /// Returns the figures as CSV (RFC 4180, with line feeds): a line `figure,value`, then a line for each figure.
    ///
    /// Names are paths of the JSON report, such as `silence_ms.p99`; a figure without samples has no value. Histograms
    /// and the timeline are left out: see [`Report::to_hdr_log`] and the JSON.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from("figure,value\n");
        if let Ok(Value::Object(report)) = serde_json::to_value(self) {
            for (name, value) in &report {
                if !LEFT_OUT.contains(&name.as_str()) {
                    write(&mut csv, name, value);
                }
            }
        }
        csv
    }
}

fn write(csv: &mut String, name: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                write(csv, &format!("{name}.{member}"), value);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                write(csv, &format!("{name}.{place}"), value);
            }
        }
        Value::Null => line(csv, name, ""),
        Value::String(text) => line(csv, name, text),
        other => line(csv, name, &other.to_string()),
    }
}

fn line(csv: &mut String, name: &str, value: &str) {
    csv.push_str(&quoted(name));
    csv.push(',');
    csv.push_str(&quoted(value));
    csv.push('\n');
}

/// Returns the field as it is, or in quotes where it holds what separates fields.
fn quoted(field: &str) -> std::borrow::Cow<'_, str> {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}

/// Not figures, but what they were read from.
const LEFT_OUT: [&str; 3] = ["histograms", "slices", "timeline"];

#[cfg(test)]
mod tests {
    use super::super::super::test_report::sample;
    use super::*;

    #[test]
    fn every_line_is_a_name_and_a_value() {
        let csv = sample().to_csv();
        assert!(csv.starts_with("figure,value\n"));
        for line in ["streams.requested,100\n", "would_be_cut.30s,1\n", "streams.failed.cut_reset,1\n", "gap_ms,\n"] {
            assert!(csv.contains(line), "{line} is missing:\n{csv}");
        }
        assert!(csv.contains("silence_ms.p99_9,") && !csv.contains("histograms"), "{csv}");
    }

    #[test]
    fn what_separates_fields_is_quoted() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
