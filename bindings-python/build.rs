//! Sets the linker arguments of a Python module.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        // Otherwise the file names itself by the folder of the build.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/_isolane.abi3.so");
    }
}
