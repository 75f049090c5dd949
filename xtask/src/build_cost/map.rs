use fibula::{ipnet::IpNet, map::IpPrefixMap};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut map = IpPrefixMap::new();
    map.insert("192.0.2.0/24".parse::<IpNet>()?, "office");
    Ok(println!("{:?}", map.lookup(std::net::IpAddr::from([192, 0, 2, 1]))))
}
