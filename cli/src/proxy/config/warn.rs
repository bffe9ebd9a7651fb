//! Settings that work and may still surprise. Told by the command at the start and by `--check`.

use super::{Config, Upstream};

impl Config {
    /// What an operator should know about these settings, a sentence each; empty when nothing is unusual.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(admin) = self.admin
            && !admin.ip().is_loopback()
        {
            warnings.push(format!("the admin listener {admin} is open to the network and asks for no password"));
        }
        if self.trusted.iter().any(|net| net.prefix_len() == 0) {
            warnings.push("every peer is trusted, so that anybody can name any address in X-Forwarded-For".to_owned());
        }
        warnings.extend(self.upstreams.iter().flat_map(of_upstream));
        for (index, upstream) in self.upstreams.iter().enumerate() {
            for before in self.upstreams[..index].iter().filter(|before| before.paths == upstream.paths) {
                let twice = upstream.models.iter().filter(|model| before.models.contains(model));
                warnings.extend(twice.map(|model| {
                    format!(
                        "upstream {:?}: requests for {model:?} all go to {:?} before it",
                        upstream.name, before.name
                    )
                }));
            }
        }
        warnings
    }
}

fn of_upstream(upstream: &Upstream) -> Vec<String> {
    let name = &upstream.name;
    let interval = upstream.heart.interval;
    let mut warnings = Vec::new();
    for (key, commit) in [("commit_after", upstream.commit_after), ("commit_json_after", upstream.commit_json_after)] {
        if let Some(commit) = commit.filter(|commit| *commit > 2 * interval) {
            warnings.push(format!(
                "upstream {name:?}: {key} {commit:?} is more than two intervals of {interval:?}: a hop that needs that \
                 interval may have cut the request by then"
            ));
        }
    }
    if let Some(idle) = upstream.body_idle {
        warnings.push(format!("upstream {name:?}: body_idle {idle:?} cuts streams of engines that think longer"));
    }
    if let Some(timeout) = upstream.response_timeout.filter(|timeout| *timeout < interval) {
        warnings.push(format!("upstream {name:?}: response_timeout {timeout:?} cuts requests that wait in a queue"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_unusual_settings_are_told() {
        let mut config = Config::single(http::Uri::from_static("http://127.0.0.1:1"));
        assert_eq!(config.warnings(), Vec::<String>::new());
        config.admin = Some(([0, 0, 0, 0], 9900).into());
        config.trusted = vec!["0.0.0.0/0".parse().unwrap()];
        let upstream = &mut config.upstreams[0];
        upstream.commit_after = Some(Duration::from_secs(61));
        upstream.body_idle = Some(Duration::from_secs(61));
        upstream.response_timeout = Some(Duration::from_secs(20));
        assert_eq!(config.warnings().len(), 5);

        let mut config = Config::single(http::Uri::from_static("http://127.0.0.1:1"));
        config.upstreams[0].models = vec!["x".to_owned()];
        let mut second = config.upstreams[0].clone();
        second.models.push("y".to_owned());
        config.upstreams.push(second);
        let told = config.warnings();
        assert!(matches!(&*told, [warning] if warning.contains("requests for \"x\"")), "{told:?}");
    }
}
