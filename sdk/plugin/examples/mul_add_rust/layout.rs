//! Prints the layout of abi.rs, for a test.
mod abi;

fn main() {
    abi::print_layout();
}
