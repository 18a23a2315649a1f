//! Expressions over one device, with their values.

use std::sync::Arc;

use crate::{Program, Quantity, Semver, Value};

fn device() -> Value {
    let own = Value::map(
        [
            (Arc::from("model"), Value::text("A100")),
            (Arc::from("index"), Value::Int(3)),
            (Arc::from("ecc"), Value::Bool(true)),
            (Arc::from("version"), Value::Semver(Arc::new(Semver::parse("1.10.0-rc.1").expect("a version")))),
        ],
        false,
    );
    let memory =
        Value::map([(Arc::from("memory"), Value::Quantity(Quantity::parse("40Gi").expect("a quantity")))], false);
    Value::map(
        [
            (Arc::from("driver"), Value::text("gpu.example.com")),
            (Arc::from("attributes"), Value::map([(Arc::from("gpu.example.com"), own)], true)),
            (Arc::from("capacity"), Value::map([(Arc::from("gpu.example.com"), memory)], true)),
        ],
        false,
    )
}

fn test(text: &str) -> Result<bool, String> {
    let program = Program::compile(text).map_err(|error| error.to_string())?;
    program.test("device", &device()).map_err(|error| error.to_string())
}

#[test]
fn selectors_of_devices() {
    for (text, want) in [
        (r#"device.driver == "gpu.example.com""#, true),
        (r#"device.driver == 'gpu.example.com' && device.attributes["gpu.example.com"].index < 4"#, true),
        (r#"device.attributes["gpu.example.com"].model in ["A100", "H100"]"#, true),
        (r#"device.attributes["gpu.example.com"].model.lowerAscii().matches("^a\\d+$")"#, true),
        (r#"has(device.attributes["gpu.example.com"].model)"#, true),
        (r#"has(device.attributes["other.example.com"].model)"#, false),
        (r#""other.example.com" in device.attributes"#, false),
        (r#"device.attributes["other.example.com"].?model.orValue("none") == "none""#, true),
        (r#"device.attributes[?"other.example.com"].model.hasValue()"#, false),
        (r#"device.attributes["gpu.example.com"].?index.orValue(0) == 3"#, true),
        (r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0"#, true),
        (r#"device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))"#, false),
        (r#"device.capacity["gpu.example.com"].memory == quantity("40960Mi")"#, true),
        (r#"device.attributes["gpu.example.com"].version.isLessThan(semver("1.10.0"))"#, true),
        (r#"device.attributes["gpu.example.com"].version.compareTo(semver("1.9.0")) > 0"#, true),
        (r#"cel.bind(own, device.attributes["gpu.example.com"], own.ecc && own.index == 3)"#, true),
        (r#"["A100", "H100"].exists(one, device.attributes["gpu.example.com"].model.startsWith(one))"#, true),
        (r#"device.attributes["gpu.example.com"].model.includes("A100")"#, true),
        (r#"device.attributes["nobody.example.com"].model == "x" || true"#, true),
        (r#"false && device.attributes["nobody.example.com"].model == "x""#, false),
    ] {
        assert_eq!(test(text), Ok(want), "{text}");
    }
}

#[test]
fn the_language_itself() {
    for text in [
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "1 == 1u && 1 == 1.0 && 0x10 == 16",
        "-9223372036854775808 < 0",
        "!!true && !false",
        "true ? 1 == 1 : 1 / 0 == 1",
        "[1, 2, 3].all(x, x > 0) && ![1, 2].exists(x, x > 2) && [1, 2].exists_one(x, x == 2)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].map(x, x > 1, x * 2) == [4, 6]",
        "[1, 2, 3].filter(x, x != 2) == [1, 3]",
        "{'a': 1}.a == 1 && 'a' in {'a': 1} && {'a': 1}.size() == 1",
        "[1] + [2] == [1, 2] && 'a' + 'b' == 'ab'",
        r"'a\tb'.size() == 3 && r'a\tb'.size() == 4 && '\u00e4'.size() == 1",
        "'a,b'.split(',') == ['a', 'b'] && 'abc'.substring(1) == 'bc' && 'abc'.indexOf('c') == 2",
        "int('3') == 3 && string(3) == '3' && double(1) < 1.5",
        "isQuantity('3Gi') && !isQuantity('3Xi') && !isSemver('1.2')",
        "'a' != 1",
        "quantity('1500m').sub(quantity('500m')).asInteger() == 1",
    ] {
        assert_eq!(test(text), Ok(true), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, part) in [
        ("device.", "expected a name, found the end"),
        ("device.driver = 'x'", "expected an operator or the end"),
        ("\"open", "has no end"),
        ("device.driver", "the result is a string, not true or false"),
        (r#"device.attributes["gpu.example.com"].modle == "x""#, "no such key: modle"),
        ("dev.driver == 'x'", "there is no `dev`"),
        ("device.driver + 1 == 'x'", "a string + an int is not defined"),
        ("device.driver.shout() == 'x'", "a string has no shout()"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 > 0", "too large"),
        ("has(device)", "has() takes one field"),
        ("quantity('x') == quantity('1')", "`x` is no quantity"),
        ("'a'.matches('[')", "cannot be read"),
        ("[1].exists(x.y, true)", "plain name"),
        ("#", "unexpected `#`"),
    ] {
        let said = test(text).expect_err(text);
        assert!(said.contains(part), "{text}: {said}");
    }
}

#[test]
fn cost_and_nesting_are_bounded() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let deep = (0..8).fold("true".to_owned(), |inner, i| format!("{ten}.all(x{i}, {inner})"));
    assert!(test(&deep).expect_err("a hundred million steps").contains("more than 1000000 steps"));
    let doubled = (0..40).fold("'aaaaaaaaaa'".to_owned(), |inner, i| format!("cel.bind(v{i}, {inner}, v{i} + v{i})"));
    assert!(test(&format!("{doubled} == ''")).is_err());
    assert!(test(&format!("{}true{}", "(".repeat(500), ")".repeat(500))).expect_err("deep").contains("nests deeper"));
    assert!(test(&format!("1{} == 0", "+1".repeat(2_000))).expect_err("deep").contains("nests deeper"));
    assert_eq!(test(&vec!["true"; 1_500].join("&&")), Ok(true));
    assert!(test(&format!("'{}' == ''", "a".repeat(11_000))).expect_err("long").contains("more than the 10240"));
    assert!(test(&format!("{}true", "!".repeat(9_000))).is_ok());
}

#[test]
fn quantities_are_exact_and_print_back() {
    for (text, shown) in
        [("40Gi", "40Gi"), ("1.5", "1500m"), ("0", "0"), ("1e3", "1000"), ("2048", "2Ki"), ("1n", "1n")]
    {
        assert_eq!(Quantity::parse(text).expect(text).to_string(), shown, "{text}");
    }
    assert!(["", ".", "1.2.3", "Gi", "1e99", "1 Gi"].iter().all(|text| Quantity::parse(text).is_none()));
}

#[test]
fn versions_are_ordered_as_semver_says() {
    let all = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0"];
    for pair in all.windows(2) {
        assert!(Semver::parse(pair[0]) < Semver::parse(pair[1]), "{pair:?}");
    }
    assert_eq!(Semver::parse("1.0.0+a"), Semver::parse("1.0.0+b"));
    assert!(["1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0.0"].iter().all(|text| Semver::parse(text).is_none()));
}
