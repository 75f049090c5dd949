//! Faults planted in the kernels: each must make a test fail. The kernels are text that OpenCL compiles when a device is opened, so
//! no build is needed.

use fibula::net::Toy;
use fibula_gpu::device;
use fibula_proof::subject::Tested;
use fibula_proof::verdict::Failure;
use libtest_mimic::{Completion, Trial};

use super::support::engines;
use super::{full, small};

/// What is replaced, by what, and the structure whose tests must notice.
const FAULTS: &[(&str, &str, &str)] = &[
    ("if (code >> 15) {", "if (code >> 14) {", "dir-24-8"),
    (
        "(code & 0x7fff) << rest_bits | window(key, direct_bits",
        "(code & 0x7fff) << rest_bits | window(key, 0",
        "dir-24-8",
    ),
    ("return number(image, 2) ? word(image, 2, code) : code;", "return code;", "dir-24-8"),
    (
        "word(image, array, at / 2) >> (16 * (at % 2))",
        "word(image, array, at / 2) >> (16 * (~at % 2))",
        "dir-24-8",
    ),
    ("(0xffffffu >> ((23 - bit) & 31))", "(0x7fffffu >> ((23 - bit) & 31))", "dir-18-lines"),
    (
        "(most & 0xff) <= rest && rest <= (other & 0xff) ? other : most) >> 8;\n    }\n    uint shift",
        "(most & 0xff) < rest && rest <= (other & 0xff) ? other : most) >> 8;\n    }\n    uint shift",
        "dir-18-lines",
    ),
    (
        "uint place = word(image, 0, window(key, 0, direct_bits)) + (slot << width);",
        "uint place = word(image, 0, window(key, 0, direct_bits)) + slot;",
        "dir-18-lines",
    ),
    ("slot_bits + width < 2 ? 2 : slot_bits + width", "slot_bits", "dir-18-lines"),
    ("values += values == offset;", "values += 1;", "dir-18-lines"),
    ("second ? entry >> 26 : 0", "entry >> 26", "dir-17-bitmap"),
    ("entry >> (2 + second) & 1 ? 0 :", "entry >> 2 & 1 ? 0 :", "dir-17-bitmap"),
    ("if (second) {\n        before +=", "if (!second) {\n        before +=", "dir-17-bitmap"),
    (
        "value(image, 1, 8 * (begin + words) + (rank << width), width)",
        "value(image, 1, 8 * (begin + words) + rank, width)",
        "dir-17-bitmap",
    ),
    ("first + at + by - 1) < key", "first + at + by - 1) <= key", "range-btree"),
    (
        "uint leaf = 8 * (first + at), lasts = width == 0 ? 6",
        "uint leaf = 8 * (first + at), lasts = width == 0 ? 5",
        "range-btree",
    ),
    (
        "(int)word(image, 1, at + rank + by - 1) < (int)key",
        "word(image, 1, at + rank + by - 1) < key",
        "dir-btree",
    ),
    ("return rank + (rank == 15 && count == 16", "return rank + (rank == 16 && count == 16", "dir-btree"),
    ("rank + by <= count &&", "", "dir-btree"),
    ("(rest >> 16 & 63) >> (rest >> 22 & 63)", "(rest >> 16 & 63)", "dir-btree"),
    (
        "if (high < lower.high || (high == lower.high && low < lower.low))",
        "if (high < lower.high || low < lower.low)",
        "dir-btree",
    ),
    ("half_word(image, 1, 2 * leaf + 31) << 14", "half_word(image, 1, 2 * leaf + 31) << 13", "dir-btree"),
    (
        "for (uint round = 0; round < hashes; round++, next += step)",
        "for (uint round = 0; round <= hashes; round++, next += step)",
        "bloomfwd",
    ),
    ("uint same = word(image, 2, entry) == (uint)(key.high >> 32);", "uint same = 1;", "bloomfwd"),
    (
        "for (uint steps = 0; steps < count && at < count; steps++)",
        "for (uint steps = 0; steps < 1 && at < count; steps++)",
        "bloomfwd",
    ),
    ("all.low = len <= 64 ? 0 :", "all.low = len <= 128 ? 0 :", "bloomfwd"),
    ("stored_bits == 64 ? key.high : key.high ^ hash64(key.low)", "key.high", "bloomfwd"),
    ("direct_bits ? (uint)(key.high >> (64 - direct_bits)) : 0", "0", "bloomfwd"),
    ("keys_a_base ? item / keys_a_base : 0", "0", "dir-24-8"),
    ("if (item < count) {\n        Wide key;", "if (item + 1 < count) {\n        Wide key;", "bloomfwd"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(at, &(find, replace, engine)): (usize, &(&'static str, &'static str, &'static str))| {
        let name = format!("fault/{engine}/{at}");
        Trial::ignorable_test(name, move || match device::with_kernels(&planted(find, replace)?) {
            Ok(devices) if !devices.is_empty() => {
                let noticed = notices(&*devices[0], engine);
                match noticed {
                    true => Ok(Completion::Completed),
                    false => Err(format!("nothing noticed '{replace}' in the place of '{find}'").into()),
                }
            }
            Ok(_) => Ok(Completion::ignored_with("opencl: no device")),
            Err(error) => Ok(Completion::ignored_with(format!("opencl: {error}"))),
        })
    };
    FAULTS.iter().enumerate().map(trial).collect()
}

fn planted(find: &str, replace: &str) -> Result<String, Failure> {
    match device::KERNELS.matches(find).count() {
        1 => Ok(device::KERNELS.replace(find, replace)),
        count => Err(format!("'{find}' occurs {count} times in the kernels").into()),
    }
}

/// Returns whether a test of a structure fails on a device.
fn notices(device: &dyn device::Device, engine: &str) -> bool {
    let of_name = |name: &str| name == engine || name.starts_with("bloomfwd") && engine == "bloomfwd";
    engines(Toy::<8>::entries())
        .iter()
        .filter(|entry| of_name(entry.name))
        .any(|entry| small::one_prefix(device, entry).is_err())
        || engines(u32::entries())
            .iter()
            .filter(|entry| of_name(entry.name))
            .any(|entry| full::random_tables(device, entry).is_err())
        || engines(u128::entries())
            .iter()
            .filter(|entry| of_name(entry.name))
            .any(|entry| full::random_tables(device, entry).is_err())
}
