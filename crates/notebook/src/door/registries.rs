//! A registry behind the door.
//!
//! In: its options. Out: its key, by which a face names it among the options of notebooks.

use std::sync::Arc;

use isolane::{Caller, Error, Value};
use isolane_door::{Called, Context, Given, System, no_method};

use super::{data, handles::RegistryHandle, message};
use crate::{Registry, RegistryOptions};

/// Opens a registry for a face.
///
/// # Errors
/// Misuse of an option.
pub fn open_registry(options: &Given, context: &Context) -> Result<Arc<dyn System>, Error> {
    let given = data(options, "options")?;
    let options = RegistryOptions::from_json(&given, context.spelling)?;
    Ok(Arc::new(Door(RegistryHandle::new(Registry::new(options)))))
}

struct Door(RegistryHandle);

impl System for Door {
    fn call(&self, method: &str, _args: Vec<Given>, _caller: &Caller) -> Result<Called, Error> {
        Err(no_method(method))
    }

    fn ask(&self, method: &str, _args: Vec<Given>) -> Result<Value, Error> {
        match method {
            "key" => Ok(message(&self.0.key().into())),
            _ => Err(no_method(method)),
        }
    }
}
