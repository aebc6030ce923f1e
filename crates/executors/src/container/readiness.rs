//! Engines that were found and images that are there, so that each is looked for once.
//!
//! In: the engine that was asked for, and an image. Out: an engine that has the image. The options of an executor are
//! public fields, and its copies share this: so an answer is kept for the options that it was given for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;

use super::engine::Engine;
use crate::ExecutorError;

/// The options that an answer depends on: the engine, if one was asked for, and the image.
type Asked = (Option<String>, String);

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Readiness(Arc<Mutex<HashMap<Asked, Arc<OnceCell<Engine>>>>>);

impl Readiness {
    /// Finds the engine and pulls the image, unless that has been done. Calls for the same wait for each other.
    ///
    /// # Errors
    /// `engine_missing`, `engine_failed`; the next call tries again.
    pub(super) async fn engine(
        &self,
        asked: Option<&str>,
        image: &str,
    ) -> Result<Engine, ExecutorError> {
        let cell = {
            let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (asked.map(str::to_owned), image.to_owned());
            Arc::clone(answers.entry(key).or_default())
        };
        let find = || async {
            let engine = Engine::find(asked).await?;
            engine.provide(image).await?;
            Ok(engine)
        };
        cell.get_or_try_init(find).await.cloned()
    }
}
