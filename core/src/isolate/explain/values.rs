//! The values of a failing function, read without running any code.
//!
//! In: an operand, as the text of the program names it. Out: its value, the words for it, and the names of its
//! properties.

use crate::{
    isolate::{
        crossing::clone_out::describe,
        engine::{
            Atom, Keys, Local, Outcome, Property, Raw, Thrown, address_of, class_of, double_of,
            frames::{Frame, Layout, property_count},
            int_of, is_array, is_date, is_map, is_object, is_promise, is_proxy, is_regexp, is_set,
            is_string, sys, tag_of, typed_array_type, undefined,
        },
        extension,
        state::State,
    },
    modules::program::explain::{Key, Literal, Operand, Root},
};

/// Objects with more properties are not listed: that would take time.
const MOST_LISTED: usize = 200;

/// The longest name of a property that is shown.
const NAME: usize = 40;

/// The longest text that is a key.
const KEY: usize = 256;

/// Prototypes whose properties are read for a name.
const PROTOTYPES: usize = 6;

/// The place where an operation failed.
pub(super) struct Values<'s> {
    pub(super) state: &'s State,
    pub(super) layout: Layout,
    pub(super) frame: &'s Frame,
    /// The name of the class that was called.
    pub(super) class: String,
    /// The functions that the place called: the class or builtin that failed, and builtins between.
    pub(super) called: Vec<Raw>,
    /// The first arguments of the builtin that the place called and that failed, where they are known.
    pub(super) given: [Option<Local>; 2],
}

/// The knowledge of an operand.
pub(super) enum Known {
    Value(Local),
    Literal(Literal),
    Nothing,
}

impl Values<'_> {
    pub(super) fn known(&self, operand: &Operand) -> Known {
        if operand.defaulted
            && let Some(value) = self.value(operand)
        {
            return Known::Value(value);
        }
        if let Some(literal) = operand.literal {
            return Known::Literal(literal);
        }
        self.value(operand).map_or(Known::Nothing, Known::Value)
    }

    fn value(&self, operand: &Operand) -> Option<Local> {
        let value = self.present(operand)?;
        let replaced = operand.defaulted && tag_of(value.raw()) == sys::JS_TAG_UNDEFINED;
        (!replaced).then_some(value)
    }

    /// The value before a default takes its place.
    fn present(&self, operand: &Operand) -> Option<Local> {
        if let Some(root) = &operand.root {
            return match root {
                Root::Variable(name, _) => self.variable(name),
                Root::Own(name) => self.variable(name),
                Root::Global(name) => self.global(name).or_else(|| self.built_in(name)),
                Root::Argument(index) => self.frame.argument(self.state.realm().cx, *index),
            };
        }
        let (object, key) = operand.of.as_ref()?;
        let literal = object.literal;
        let object = self.value(object).or_else(|| self.sample(literal?))?;
        let name = self.key(key)?;
        // The elements of a literal are not known.
        let is_element = matches!(key, Key::Element(_)) || name.parse::<u32>().is_ok();
        let has_others = match key {
            Key::Element(_) => !is_array(object.raw()),
            _ => false,
        };
        if has_others || (is_element && literal == Some(Literal::Array)) {
            return None;
        }
        self.property(&object, &name)
    }

    /// A value with the properties that every literal of that kind has.
    fn sample(&self, literal: Literal) -> Option<Local> {
        let cx = self.state.realm().cx;
        let sample = match literal {
            Literal::String => cx.string(""),
            Literal::Array => cx.array(),
            Literal::Number => Ok(cx.number(0.0)),
            _ => return None,
        };
        sample.map_err(|Thrown| drop(cx.exception())).ok()
    }

    /// Whether a value is one of the functions that the place called.
    pub(super) fn was_called(&self, value: Raw) -> bool {
        is_object(value)
            && self.called.iter().any(|called| address_of(*called) == address_of(value))
    }

    /// The number that a value is.
    pub(super) fn number(value: Raw) -> Option<f64> {
        match tag_of(value) {
            sys::JS_TAG_INT => Some(f64::from(int_of(value))),
            sys::JS_TAG_FLOAT64 => Some(double_of(value)),
            _ => None,
        }
    }

    /// Whether the failed builtin got the value of that operand as its first argument; `None` where that is not known.
    pub(super) fn was_given(&self, operand: &Operand) -> Option<bool> {
        let given = self.given[0].as_ref()?.raw();
        let known = match self.known(operand) {
            Known::Value(value) => value,
            Known::Literal(Literal::Number) => {
                let written = operand.text.parse::<f64>().ok()?;
                return Some(written.to_bits() == Self::number(given)?.to_bits());
            }
            _ => return None,
        };
        let known = known.raw();
        match [Self::number(given), Self::number(known)] {
            [Some(given), Some(known)] => Some(given.to_bits() == known.to_bits()),
            _ if is_object(given) && is_object(known) => {
                Some(address_of(given) == address_of(known))
            }
            _ => (tag_of(given) != tag_of(known)).then_some(false),
        }
    }

    /// Whether a Date has no time; `None` for anything else.
    pub(super) fn is_invalid_date(&self, value: Raw) -> Option<bool> {
        let realm = self.state.realm();
        if !is_date(value) {
            return None;
        }
        let time = realm.cx.call(realm.intrinsics.date_get_time, value, &[]);
        let time = time.map_err(|Thrown| drop(realm.cx.exception())).ok()?;
        Some(tag_of(time.raw()) != sys::JS_TAG_INT && double_of(time.raw()).is_nan())
    }

    /// The key of a property, as text.
    pub(super) fn key(&self, key: &Key) -> Option<String> {
        match key {
            Key::Name(name) => Some(name.clone()),
            Key::Element(index) => Some(index.to_string()),
            Key::Value(operand) => {
                let value = self.value(operand)?;
                match tag_of(value.raw()) {
                    sys::JS_TAG_INT => Some(int_of(value.raw()).to_string()),
                    _ if is_string(value.raw()) => Some(self.state.excerpt(value.raw(), KEY)),
                    _ => None,
                }
            }
        }
    }

    /// Whether a key is known to be a text, not a number.
    pub(super) fn is_text(&self, key: &Key) -> bool {
        match key {
            Key::Value(operand) => self.value(operand).is_some_and(|key| is_string(key.raw())),
            Key::Name(_) | Key::Element(_) => false,
        }
    }

    /// The words for an operand that is a promise, and for the function that made it one.
    pub(super) fn promise(&self, operand: &Operand) -> Option<String> {
        let maker = operand.origin.as_ref().filter(|maker| match self.known(maker) {
            Known::Value(function) => self.is_asynchronous(function.raw()),
            _ => false,
        });
        let is_promise = match self.known(operand) {
            Known::Value(value) => is_promise(value.raw()),
            _ => maker.is_some() && operand.root.is_none() && operand.of.is_none(),
        };
        let because =
            maker.map(|maker| format!(", for {} is asynchronous", maker.text)).unwrap_or_default();
        is_promise.then(|| format!("{} is a promise{because}: await it", operand.text))
    }

    /// Whether every call of a function gives a promise.
    fn is_asynchronous(&self, function: Raw) -> bool {
        let class = self.state.realm().cx.class_name(class_of(function));
        class.as_deref() == Some("AsyncFunction") || self.state.is_asynchronous(function)
    }

    /// The value of a name, as the failing function sees it.
    fn variable(&self, name: &str) -> Option<Local> {
        let cx = self.state.realm().cx;
        let atom = cx.atom(name).ok()?;
        if self.frame.names().contains(&atom.id) {
            return self.frame.variable(cx, &atom);
        }
        // The declaration may be for the type checker alone.
        self.global(name).or_else(|| self.built_in(name))
    }

    /// The value of a name of the language, or of the sandbox.
    fn built_in(&self, name: &str) -> Option<Local> {
        let cx = self.state.realm().cx;
        if name == "console" && !self.state.own_console.get() {
            return Some(cx.dup(self.state.realm().intrinsics.console));
        }
        let atom = cx.atom(name).ok()?;
        let global = cx.global().ok()?;
        match self.own(global.raw(), &atom).ok()? {
            Some(Property::Data(value)) => Some(value),
            _ => None,
        }
    }

    /// The value of a global of the host, or of a name that an earlier cell has declared.
    pub(super) fn global(&self, name: &str) -> Option<Local> {
        if self.state.session.is_some() {
            return self.state.known_value(name);
        }
        if let Some(value) = extension::value(self.state, name) {
            return Some(value);
        }
        let task = self.state.task.try_borrow().ok()?;
        let index = task.globals.iter().position(|global| global == name)?;
        self.state.inputs.try_borrow().ok()?.get(index).cloned()
    }

    /// The names of the host's globals.
    pub(super) fn globals(&self) -> Vec<String> {
        if self.state.session.is_some() {
            return self.state.given_names();
        }
        let mut names = extension::names(self.state);
        names.extend(self.state.task.try_borrow().iter().flat_map(|task| task.globals.clone()));
        names
    }

    /// The names that earlier cells have declared.
    pub(super) fn declared(&self) -> Vec<String> {
        self.state.declared_names()
    }

    /// The value of a property, `undefined` where there is none; `None` where code would have to run.
    pub(super) fn property(&self, object: &Local, name: &str) -> Option<Local> {
        let cx = self.state.realm().cx;
        let key = cx.atom(name).ok()?;
        let mut at = object.clone();
        for _ in 0..PROTOTYPES {
            if is_object(at.raw()) {
                if is_proxy(at.raw()) {
                    return None;
                }
                match self.own(at.raw(), &key).ok()? {
                    Some(Property::Data(value)) => return Some(value),
                    Some(Property::Accessor(_)) => return None,
                    None => {}
                }
            } else if nullish(at.raw()).is_some() || (is_string(at.raw()) && own_of_strings(name)) {
                return None;
            }
            at = self.prototype(&at)?;
            if tag_of(at.raw()) == sys::JS_TAG_NULL {
                return Some(cx.dup(undefined()));
            }
        }
        None
    }

    /// An own property; an error where it cannot be read.
    fn own(&self, object: Raw, key: &Atom) -> Outcome<Option<Property>> {
        let cx = self.state.realm().cx;
        cx.own_property(object, key.id).inspect_err(|Thrown| drop(cx.exception()))
    }

    fn prototype(&self, object: &Local) -> Option<Local> {
        if is_proxy(object.raw()) {
            return None;
        }
        let cx = self.state.realm().cx;
        cx.prototype(object.raw()).map_err(|Thrown| drop(cx.exception())).ok()
    }

    /// The words for a value: `undefined`, `a string`, `an instance of Order`.
    pub(super) fn kind(&self, value: Raw) -> String {
        let plain = match tag_of(value) {
            sys::JS_TAG_UNDEFINED => "undefined",
            sys::JS_TAG_NULL => "null",
            sys::JS_TAG_BOOL => "a boolean",
            sys::JS_TAG_INT | sys::JS_TAG_FLOAT64 => "a number",
            sys::JS_TAG_BIG_INT | sys::JS_TAG_SHORT_BIG_INT => "a bigint",
            sys::JS_TAG_SYMBOL => "a symbol",
            _ if is_string(value) => "a string",
            _ if !is_object(value) => "a value",
            _ if is_proxy(value) => "a Proxy",
            _ if self.state.realm().cx.is_function(value) => "a function",
            _ if is_array(value) => "an array",
            _ if is_promise(value) => "a promise",
            _ if is_date(value) => "a Date",
            _ if is_map(value) => "a Map",
            _ if is_set(value) => "a Set",
            _ if is_regexp(value) => "a RegExp",
            _ => return self.object_kind(value),
        };
        plain.to_owned()
    }

    fn is_namespace(&self, value: Raw) -> bool {
        let cx = self.state.realm().cx;
        let plain = cx.object().map_err(|Thrown| drop(cx.exception()));
        plain.is_ok_and(|plain| class_of(plain.raw()) != class_of(value))
    }

    fn object_kind(&self, value: Raw) -> String {
        let class = self.state.realm().cx.class_name(class_of(value));
        match class.as_deref() {
            Some("Arguments") => return "an object like an array".to_owned(),
            // The engine gives the namespaces of modules a class of their own with the name of the plain one.
            Some("Object") if self.is_namespace(value) => return "a module".to_owned(),
            _ => {}
        }
        match describe(self.state, value) {
            name if name == "an instance of Object" => "an object".to_owned(),
            name if name.ends_with("unnamed class") => "an object".to_owned(),
            name => crate::data::text::bounded(name, 2 * NAME),
        }
    }

    /// Whether an object takes no new properties and none can be written, as far as a few of them tell.
    pub(super) fn is_frozen(&self, value: Raw) -> bool {
        const ASKED: usize = 16;
        let cx = self.state.realm().cx;
        let names =
            if is_array(value) { Some(vec!["length".to_owned()]) } else { self.names(value) };
        let writable = |name: &String| {
            let key = cx.atom(name);
            key.and_then(|key| cx.is_writable(value, key.id)).unwrap_or_else(|Thrown| {
                drop(cx.exception());
                false
            })
        };
        self.is_closed(value) && names.is_some_and(|names| !names.iter().take(ASKED).any(writable))
    }

    /// Whether an object takes no new properties; `false` where it is none.
    #[expect(unsafe_code, reason = "asks the engine")]
    pub(super) fn is_closed(&self, value: Raw) -> bool {
        // SAFETY: a live object that is no Proxy.
        is_object(value)
            && !is_proxy(value)
            && unsafe { sys::JS_IsExtensible(self.state.realm().cx.0, value) } == 0
    }

    /// The own names of an object, if they are few: the enumerable ones, if there are any.
    pub(super) fn names(&self, value: Raw) -> Option<Vec<String>> {
        if !self.is_listable(value) || is_array(value) {
            return None;
        }
        let cx = self.state.realm().cx;
        let names = self.shown(cx.keys(value));
        let names = if names.is_empty() { self.shown(cx.all_keys(value)) } else { names };
        // On a full stack no name can be read.
        (!names.iter().any(String::is_empty)).then_some(names)
    }

    /// Whether the object has a getter of that name, or inherits one.
    pub(super) fn has_getter(&self, object: &Local, key: &str) -> bool {
        let cx = self.state.realm().cx;
        let Ok(key) = cx.atom(key) else { return false };
        let mut at = Some(object.clone());
        for _ in 0..PROTOTYPES {
            let Some(here) = at.filter(|at| is_object(at.raw()) && !is_proxy(at.raw())) else {
                return false;
            };
            match self.own(here.raw(), &key) {
                Ok(Some(property)) => return matches!(property, Property::Accessor(_)),
                Ok(None) => at = self.prototype(&here),
                Err(Thrown) => return false,
            }
        }
        false
    }

    /// The number of elements of an array.
    pub(super) fn elements(&self, value: Raw) -> Option<i64> {
        if is_array(value) { self.state.realm().cx.length(value).ok() } else { None }
    }

    /// The names of the properties that a value has or inherits, enumerable or not.
    pub(super) fn members(&self, value: &Local) -> Vec<String> {
        let cx = self.state.realm().cx;
        let mut names = Vec::new();
        let mut at = value.clone();
        for _ in 0..PROTOTYPES {
            if self.is_listable(at.raw()) {
                names.append(&mut self.shown(cx.all_keys(at.raw())));
            }
            match self.prototype(&at) {
                Some(prototype) if is_object(prototype.raw()) => at = prototype,
                _ => break,
            }
        }
        names
    }

    fn shown(&self, keys: Outcome<Keys>) -> Vec<String> {
        match keys {
            Ok(keys) => {
                let atoms = (0..keys.len()).filter_map(|index| keys.atom(index));
                atoms.map(|atom| self.state.key_excerpt(atom, NAME)).collect()
            }
            Err(Thrown) => {
                drop(self.state.realm().cx.exception());
                Vec::new()
            }
        }
    }

    /// Whether it takes no time to list an object's own properties, and no code.
    fn is_listable(&self, value: Raw) -> bool {
        let cx = self.state.realm().cx;
        let few = is_object(value)
            && !is_proxy(value)
            && typed_array_type(value).is_none()
            && property_count(self.layout, value) <= MOST_LISTED;
        few && match cx.class_name(class_of(value)).as_deref() {
            // Elements and characters are no entries of the table that was counted.
            Some("Array" | "String") => cx.length(value) == Ok(0),
            Some("Arguments") => false,
            _ => true,
        }
    }

    /// The specifiers that an import may name.
    pub(super) fn importable(&self) -> Vec<String> {
        self.state.linker.try_borrow().map(|linker| linker.importable()).unwrap_or_default()
    }
}

/// Characters and the length of a string are its own properties.
fn own_of_strings(key: &str) -> bool {
    key == "length" || key.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a value is of a kind that the language iterates over.
pub(super) fn is_iterable(value: Raw) -> bool {
    is_string(value)
        || is_array(value)
        || is_map(value)
        || is_set(value)
        || typed_array_type(value).is_some()
}

/// The word for `undefined` or `null`.
pub(super) fn nullish(value: Raw) -> Option<&'static str> {
    match tag_of(value) {
        sys::JS_TAG_UNDEFINED => Some("undefined"),
        sys::JS_TAG_NULL => Some("null"),
        _ => None,
    }
}

/// The words for the value of a literal.
pub(super) fn literal_kind(literal: Literal) -> &'static str {
    match literal {
        Literal::Undefined => "undefined",
        Literal::Null => "null",
        Literal::Boolean => "a boolean",
        Literal::Number => "a number",
        Literal::BigInt => "a bigint",
        Literal::Symbol => "a symbol",
        Literal::String => "a string",
        Literal::Function => "a function",
        Literal::Array => "an array",
        Literal::Object => "an object",
    }
}
