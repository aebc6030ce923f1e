//! What the fuzzer has found worth keeping, once more and without it.

use std::path::Path;

use isolane_fuzz::{clone, interleaving, modules, replay, source};

#[test]
fn the_corpus_finds_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let targets: [(&str, fn(&[u8])); 4] = [
        ("source", source::check),
        ("modules", modules::check),
        ("clone", clone::check),
        ("interleaving", interleaving::check),
    ];
    for (name, check) in targets {
        assert!(replay(&corpus.join(name), check) > 0, "nothing for {name}");
    }
}
