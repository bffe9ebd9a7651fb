//! The report as one page that needs nothing else: figures, styles and script in one file, and no network.

use serde_json::{Map, Value, json};

use super::super::histograms::NAMES;
use super::super::spread::Spread;
use super::Report;

impl Report {
    /// Returns the report as one HTML page, to be kept or sent as a file; it loads nothing from anywhere.
    ///
    /// Shows the verdict, the silence distribution beside the limits of well-known hops, streams held over time,
    /// percentiles, failures and settings, in light and dark. Without JavaScript it holds the plain summary.
    pub fn to_html(&self) -> String {
        // In a script element only `<` could end the text early, and JSON lets it be written otherwise.
        let data = self.page_data().to_string().replace('<', "\\u003c");
        let (title, summary) = (escaped(&self.settings.url), escaped(&self.to_string()));
        let mut pieces = PAGE.split("{{");
        let mut page = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (place, rest) = piece.split_once("}}").unwrap_or_default();
            page.push_str(match place {
                "style" => STYLE,
                "title" => &title,
                "summary" => &summary,
                "script" => SCRIPT,
                _ => &data,
            });
            page.push_str(rest);
        }
        page
    }

    /// What the page's script draws: the JSON report, with curves in place of the packed histograms.
    fn page_data(&self) -> Value {
        let mut data = serde_json::to_value(self).unwrap_or_default();
        let mut curves = Map::new();
        for name in NAMES {
            if let Some(spread) = self.histograms.named(name).filter(|spread| spread.count() > 0) {
                curves.insert(name.to_owned(), curve(spread));
            }
        }
        data["curves"] = Value::Object(curves);
        let hops = self.would_be_cut.by_limit();
        let hops = hops.map(|(limit, cut)| json!({ "names": limit.names(), "seconds": limit.seconds(), "cut": cut }));
        data["hops"] = hops.collect();
        // A whole number this large is no exact one in a script.
        data["settings"]["requests"] = format!("{:016x}", self.settings.requests).into();
        data["version"] = env!("CARGO_PKG_VERSION").into();
        if let Some(members) = data.as_object_mut() {
            members.remove("histograms");
            members.remove("slices");
        }
        data
    }
}

/// A distribution as the page draws it.
fn curve(spread: &Spread) -> Value {
    let percentiles: Vec<_> = QUANTILES.iter().filter_map(|quantile| spread.quantile_ms(*quantile)).collect();
    let mut bins: Vec<(i32, u64)> = Vec::new();
    for (us, count) in spread.micros() {
        let bin = ((us.max(1) as f64).log10() * BINS_PER_DECADE).floor() as i32;
        match bins.last_mut() {
            Some((last, sum)) if *last == bin => *sum += count,
            _ => bins.push((bin, count)),
        }
    }
    let bins: Vec<_> = bins
        .into_iter()
        .map(|(bin, count)| {
            let edge = |bin: i32| 10_f64.powf(f64::from(bin) / BINS_PER_DECADE) / 1_000.0;
            json!([edge(bin), edge(bin + 1), count])
        })
        .collect();
    json!({ "count": spread.count(), "quantiles": QUANTILES, "ms": percentiles, "bins": bins })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Where the curve of percentiles is read: evenly spaced in nines.
const QUANTILES: [f64; 17] =
    [0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.975, 0.99, 0.995, 0.998, 0.999, 0.9999, 1.0];

/// Bins of the histogram, each a tenth of a decade: 26 % wide.
const BINS_PER_DECADE: f64 = 10.0;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

#[cfg(test)]
mod tests {
    use super::super::super::test_report::sample;

    #[test]
    fn the_page_is_whole_and_asks_nobody() {
        let page = sample().to_html();
        assert!(!page.contains("{{"), "a place was left open");
        assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
        for outside in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!page.contains(outside), "{outside} would ask somebody");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn nothing_of_the_server_or_the_user_becomes_markup() {
        let mut report = sample();
        report.settings.url = "http://x/</script><script>alert(1)//{{data}}".to_owned();
        report.heartbeats.kinds.insert("<img src=x onerror=alert(1)>".to_owned(), 1);
        let page = report.to_html();
        assert_eq!(page.matches("</script>").count(), 2, "the page's own two");
        assert!(!page.contains("<img"));
    }

    #[test]
    fn the_bins_hold_every_stream() {
        let data = sample().page_data();
        let bins = data["curves"]["silence"]["bins"].as_array().unwrap();
        let sum: u64 = bins.iter().filter_map(|bin| bin[2].as_u64()).sum();
        assert_eq!(sum, 101);
        assert!(data.get("histograms").is_none());
    }
}
