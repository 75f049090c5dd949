//! `fibula-lab device` and the figures of `fibula-lab paper` that take a coprocessor, on the processor by OpenCL. No speed is
//! asserted here.

use std::path::Path;

use crate::support;
use crate::support::{Folder, run};
use serde_json::Value;

/// Whether OpenCL has a driver here. Tests that need one are ignored by name where it is missing.
fn has_opencl() -> bool {
    Path::new("/etc/OpenCL/vendors").read_dir().is_ok_and(|mut drivers| drivers.next().is_some())
}

const TABLES: [&str; 4] = ["--synth", "ipv4/2000", "--synth", "ipv6/2000"];

#[test]
fn a_device_that_is_not_there_is_named_with_exit_code_4() {
    let run = run(&[&["device", "--quiet", "--device", "opencl:999"][..], &TABLES].concat());
    assert_eq!((run.code, run.out.as_str()), (4, ""));
    assert!(run.err.contains("no device 'opencl:999' here"), "{}", run.err);
    let run = support::run(&[&["device", "--quiet", "--device", "abacus"][..], &TABLES].concat());
    assert_eq!(run.code, 4);
    assert!(run.err.contains("there are: cuda, opencl"), "{}", run.err);
}

#[test]
#[ignore = "takes a driver for OpenCL: apt-get install pocl-opencl-icd ocl-icd-libopencl1"]
fn json_has_the_documented_fields() {
    assert!(has_opencl());
    let options =
        ["--runs", "5", "--seconds", "0", "--keys", "20000", "--buffer", "512", "--buffer", "8192", "--json"];
    let run = run(&[&["device", "--quiet", "--device", "opencl"][..], &TABLES, &options].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    for (family, name) in
        [("ipv4", "bloomfwd"), ("ipv4", "dir-24-8"), ("ipv4", "dir-18-lines"), ("ipv6", "dir-btree")]
    {
        for form in
            ["processor", "synchronous", "asynchronous", "both-synchronous", "both-asynchronous", "resident"]
        {
            let is_it =
                |row: &&Value| row["family"] == family && row["engine"] == name && row["form"] == form;
            assert!(rows.iter().any(|row| is_it(&row)), "{family} {name} {form}");
        }
    }
    for row in &rows {
        assert_eq!(
            (&row["wrong"], &row["error"], &row["rival"]),
            (&0.into(), &Value::Null, &false.into()),
            "{row}"
        );
        for number in ["mlps_median", "mlps_min", "mlps_max", "lookup_bytes", "share", "over_processor"] {
            assert!(row[number].as_f64().is_some_and(|number| number >= 0.0), "{number} of {row}");
        }
        assert!([256, 512, 8192].map(Value::from).contains(&row["batch"]), "{row}");
        let share = row["share"].as_f64().unwrap();
        match row["form"].as_str().unwrap() {
            "processor" => assert!(share == 0.0),
            "synchronous" | "asynchronous" | "resident" => assert!(share == 1.0, "{row}"),
            _ => assert!((0.0..=1.0).contains(&share)),
        }
    }
}

#[test]
#[ignore = "takes a driver for OpenCL: apt-get install pocl-opencl-icd ocl-icd-libopencl1"]
fn a_structure_that_no_device_knows_is_wrong_use() {
    let run = run(&[&["device", "--quiet", "--device", "opencl", "--engine", "radix"][..], &TABLES].concat());
    assert_eq!(run.code, 2);
    assert!(run.err.contains("there are: bloomfwd, dir-24-8"), "{}", run.err);
}

#[test]
#[ignore = "takes a driver for OpenCL: apt-get install pocl-opencl-icd ocl-icd-libopencl1"]
fn both_figures_are_measured_by_one_command() {
    let folder = Folder::new();
    let report = folder.path().join("report");
    let run = run(&["paper", "bloomfwd", "--quick", "--quiet", "-o", report.to_str().unwrap()]);
    assert!(run.code == 0 || run.code == 1, "{}", run.err);
    let record: Value = serde_json::from_slice(&std::fs::read(report.join("record.json")).unwrap()).unwrap();
    for (figure, row) in [("figure-9", "2M"), ("figure-10", "80 %"), ("figure-10", "measured on the way")] {
        let part = record["parts"].as_array().unwrap().iter().find(|part| part["exhibit"] == figure).unwrap();
        assert_eq!(part["error"], Value::Null);
        let point = part["points"].as_array().unwrap().iter().find(|point| point["row"] == row).unwrap();
        assert!(point["value"].as_f64().is_some_and(|value| value > 0.0), "{point}");
    }
}
