//! Looking at a page in a headless Chromium, at any width.

use super::tools::{output_of, scratch};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a page looked like.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Look {
    /// Errors and warnings in its console, and violations of its content policy.
    pub(crate) errors: Vec<String>,
    /// What it asked for, besides itself.
    pub(crate) requests: Vec<String>,
    /// By how many pixels it is wider than its window.
    pub(crate) overflow: i64,
    /// Its plots.
    pub(crate) plots: Vec<PlotLook>,
    /// Its tables that have rows.
    pub(crate) tables: usize,
}

/// What a plot looked like.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct PlotLook {
    /// Its heading.
    #[expect(dead_code, reason = "shown when an assertion fails")]
    pub(crate) title: String,
    /// Lines drawn.
    pub(crate) lines: usize,
    /// Points of the line with the fewest.
    pub(crate) points: usize,
    /// Bands drawn that have a height somewhere.
    pub(crate) bands: usize,
}

/// Put in front of the page's own script: hears of all that goes wrong.
const LISTENER: &str = r#"<script>
window.heard = [];
for (const level of ["error", "warn"]) console[level] = (...words) => heard.push(words.join(" "));
addEventListener("error", (event) => heard.push(event.message || "a resource failed"), true);
addEventListener("unhandledrejection", (event) => heard.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => heard.push("policy: " + event.blockedURI));
</script>"#;

/// Put behind it: tells what there is to see.
const REPORTER: &str = r#"<script>
addEventListener("load", () => setTimeout(() => {
  const points = (line) => (line.getAttribute("d").match(/[MLV]/g) || []).length;
  const plots = [...document.querySelectorAll(".plot")].map((plot) => {
    const lines = [...plot.querySelectorAll("path.line")];
    const title = plot.querySelector("h3").textContent;
    const bands = [...plot.querySelectorAll("path.band")].filter((band) => band.getBBox().height > 0);
    return { title, lines: lines.length, points: Math.min(...lines.map(points), 1e9), bands: bands.length };
  });
  parent.postMessage(JSON.stringify({
    errors: heard,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name),
    overflow: document.documentElement.scrollWidth - innerWidth,
    plots,
    tables: [...document.querySelectorAll("table")].filter((table) => table.tBodies[0].rows.length).length,
  }), "*");
}, 50));
</script>"#;

/// Opens `page` in a window `width` pixels wide. A browser's own window cannot be as narrow as a telephone's, so the
/// page is put into a frame of that width.
pub(crate) fn look_at(page: &Path, width: u32) -> Look {
    let html = std::fs::read_to_string(page).expect("a page");
    let html = html.replacen("<head>", &format!("<head>{LISTENER}"), 1).replacen(
        "</body>",
        &format!("{REPORTER}</body>"),
        1,
    );
    let framed = html.replace('&', "&amp;").replace('"', "&quot;");
    let outer = format!(
        r#"<!doctype html><meta charset="utf-8"><body style="margin:0"><pre id="seen"></pre>
<script>addEventListener("message", (event) => {{ document.getElementById("seen").textContent = event.data; }});</script>
<iframe style="border:0" width="{width}" height="900" srcdoc="{framed}"></iframe></body>"#
    );
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let wrapper = scratch().join(format!("look-{number}.html"));
    std::fs::write(&wrapper, outer).expect("a scratch file");
    let profile = scratch().join(format!("profile-{number}"));
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", wrapper.display()));
    let dom = output_of(&mut chromium, "apt-get install chromium");
    let seen = dom.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen = seen.expect("the wrapper's own element").0;
    let seen = seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&seen).unwrap_or_else(|error| panic!("the page did not report ({error}): {seen}"))
}
