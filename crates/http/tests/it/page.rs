//! The page, as far as it goes without a browser.

use crate::{client::get, scripted::world};

#[tokio::test]
async fn the_page_lets_its_own_script_run_alone() {
    let world = world().await;
    let mut nonces = Vec::new();
    for _ in 0..2 {
        let response = get(&world.server, "/").await;
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = response.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next());
        let nonce = nonce.expect("a nonce").to_owned();
        assert_eq!(nonce.len(), 32);
        let marks = ["<style", "<script"].map(|tag| format!("{tag} nonce=\"{nonce}\">"));
        assert!(marks.iter().all(|mark| response.body.matches(mark).count() == 1));
        assert_eq!(response.body.matches("<script").count(), 1);
        assert!(!response.body.contains("nonce-of-this-response"));
        for source in [" src=", "href=\"http", "href=\"/", "url(", "@import"] {
            assert!(!response.body.contains(source), "{source}");
        }
        nonces.push(nonce);
    }
    assert_ne!(nonces[0], nonces[1]);
}
