//! Sets the linker arguments of a Node addon.

fn main() {
    napi_build::setup();
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        // Otherwise the file names itself by the folder of the build.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/isolane.node");
    }
}
