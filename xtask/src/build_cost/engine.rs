use fibula::{engines::{Dir18Lines, EngineType}, net::{NextHop, Route}, rib::Rib};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rib = Rib::<u32>::default();
    rib.insert(Route::new("192.0.2.0/24".parse()?, NextHop::try_from(1)?))?;
    Ok(println!("{:?}", Dir18Lines::build(&rib, Default::default())?.lookup(0xc000_0201)))
}
