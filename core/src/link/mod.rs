pub(crate) mod specifier {
    pub(crate) fn check_import_key(_k: &str) -> Result<(), String> { Ok(()) }
    pub(crate) fn check_module_keys<'a>(_k: impl Iterator<Item = &'a str>, _f: &str) -> Result<(), String> { Ok(()) }
}
