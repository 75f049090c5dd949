use fibula::{Table, net::{IpPrefix, NextHop}};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let table = Table::new()?;
    table.insert("192.0.2.0/24".parse::<IpPrefix>()?, NextHop::try_from(1)?)?;
    Ok(println!("{:?}", table.reader()?.pin().lookup(std::net::Ipv4Addr::new(192, 0, 2, 1))))
}
