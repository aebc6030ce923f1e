//! Inputs that the fuzzer has found, replayed without it.

use std::path::Path;

use isolane_fuzz::{cells, clone, interleaving, modules, replay, source};

#[test]
fn the_corpus_finds_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let counts = [
        replay(&corpus.join("source"), source::check),
        replay(&corpus.join("modules"), modules::check),
        replay(&corpus.join("clone"), clone::check),
        replay(&corpus.join("interleaving"), interleaving::check),
        replay(&corpus.join("cells"), cells::check),
    ];
    assert!(!counts.contains(&0), "{counts:?}");
}
