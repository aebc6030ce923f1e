//! Metrics: the counts of a service and of its server, in the text format of Prometheus.
//!
//! In: counts. Out: lines.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

use isolane_environment::{Histogram, ServiceStats};

/// The counts of a server's requests.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    /// By route and status.
    requests: Mutex<BTreeMap<String, BTreeMap<u16, u64>>>,
}

impl HttpMetrics {
    /// Counts a request.
    pub(crate) fn count(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        // Routes are few, and known before.
        if !requests.contains_key(route) {
            requests.insert(route.to_owned(), BTreeMap::new());
        }
        if let Some(statuses) = requests.get_mut(route) {
            *statuses.entry(status).or_default() += 1;
        }
    }

    /// All metrics.
    pub(crate) fn text(&self, stats: &ServiceStats) -> String {
        let mut text = Text(String::new());
        text.head("processes", "gauge", "Processes that are there now.");
        for (state, count) in &stats.processes {
            text.line("processes", &[("state", state.as_str())], count);
        }
        text.head("exits_total", "counter", "Executions that ended.");
        for (state, count) in &stats.exits {
            text.line("exits_total", &[("exit_state", state.as_str())], count);
        }
        text.histogram("duration_seconds", "Times from start to end.", &stats.duration);
        text.histogram("queue_seconds", "Times from queued to start.", &stats.queue);
        text.head("tool_calls_total", "counter", "Calls of tools.");
        for count in &stats.tool_calls {
            let labels = [("tool", count.tool.as_str()), ("outcome", count.outcome)];
            text.line("tool_calls_total", &labels, &count.count);
        }
        text.head("http_requests_total", "counter", "Requests that were answered.");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for (route, statuses) in &*requests {
            for (status, count) in statuses {
                let labels = [("route", route.as_str()), ("status", &status.to_string())];
                text.line("http_requests_total", &labels, count);
            }
        }
        text.head("given_up_total", "counter", "Executions that were given up.");
        text.line("given_up_total", &[], &stats.given_up);
        text.0
    }
}

/// The lines so far.
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP isolane_{name} {help}\n# TYPE isolane_{name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: &impl ToString) {
        self.0.push_str("isolane_");
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
            let before = if at == 0 { '{' } else { ',' };
            // A String takes everything.
            let _ = write!(self.0, "{before}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { " " } else { "} " };
        self.0.push_str(end);
        self.0.push_str(&value.to_string());
        self.0.push('\n');
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in &histogram.buckets {
            self.line(&bucket, &[("le", &bound.to_string())], count);
        }
        self.line(&bucket, &[("le", "+Inf")], &histogram.count);
        self.line(&format!("{name}_sum"), &[], &histogram.sum);
        self.line(&format!("{name}_count"), &[], &histogram.count);
    }
}

#[cfg(test)]
mod tests {
    use isolane_environment::{ExecutionExitState, ProcessState, ToolCount};

    use super::*;

    #[test]
    fn the_text_of_prometheus() {
        let metrics = HttpMetrics::default();
        metrics.count("/processes", 201);
        metrics.count("/processes", 201);
        metrics.count("/processes", 400);
        let stats = ServiceStats {
            processes: vec![(ProcessState::Idle, 2)],
            exits: vec![(ExecutionExitState::Success, 3)],
            duration: Histogram { buckets: vec![(0.5, 1), (1.0, 2)], sum: 7.25, count: 3 },
            queue: Histogram::default(),
            tool_calls: vec![ToolCount { tool: "a\"b".to_owned(), outcome: "ok", count: 4 }],
            given_up: 5,
        };
        let text = metrics.text(&stats);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            r#"isolane_processes{state="idle"} 2"#,
            r#"isolane_exits_total{exit_state="success"} 3"#,
            r#"isolane_duration_seconds_bucket{le="0.5"} 1"#,
            r#"isolane_duration_seconds_bucket{le="1"} 2"#,
            r#"isolane_duration_seconds_bucket{le="+Inf"} 3"#,
            "isolane_duration_seconds_sum 7.25",
            "isolane_duration_seconds_count 3",
            r#"isolane_queue_seconds_bucket{le="+Inf"} 0"#,
            "isolane_queue_seconds_sum 0",
            "isolane_queue_seconds_count 0",
            r#"isolane_tool_calls_total{tool="a\"b",outcome="ok"} 4"#,
            r#"isolane_http_requests_total{route="/processes",status="201"} 2"#,
            r#"isolane_http_requests_total{route="/processes",status="400"} 1"#,
            "isolane_given_up_total 5",
        ];
        assert_eq!(lines, expected);
        let head = "# HELP isolane_processes Processes that are there now.\n# TYPE isolane_processes gauge\n";
        assert!(text.starts_with(head), "{text}");
    }
}
