//! Crate docs.

/// A printer.
#[derive(Debug)]
pub struct Printer<'a> {
    name: &'a str,
}

impl<'a> Printer<'a> {
    /// Prints.
    pub async fn print_all(&self) -> Result<(), Error> {
        let f = |x| x;
        Ok(())
    }
}

pub(crate) trait Show {
    fn show(&self);
}

macro_rules! my {
    () => {};
}

mod tests {
    #[test]
    fn works() {}
}
