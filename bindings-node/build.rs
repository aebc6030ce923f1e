//! Sets the linker arguments of a Node addon.

fn main() {
    napi_build::setup();
}
