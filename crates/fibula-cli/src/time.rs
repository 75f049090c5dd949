//! Times on the command line.

/// Reads seconds since 1970, or a date and time in UTC: `2024-01-31`, `2024-01-31T12:00`, `2024-01-31 12:00:00Z`.
pub(crate) fn parse(text: &str) -> Result<u32, String> {
    let wrong = || "expected seconds since 1970, or UTC as 2024-01-31T12:00:00".to_owned();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| wrong());
    }
    let text = text.strip_suffix(['Z', 'z']).unwrap_or(text);
    let (date, clock) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00:00"));
    let numbers = |text: &str, sign: char, widths: &[usize]| -> Option<Vec<i64>> {
        let parts: Vec<&str> = text.split(sign).collect();
        let fits = |(part, width): (&&str, &usize)| {
            part.len() == *width && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let fitting = parts.len() <= widths.len() && parts.iter().zip(widths).all(fits);
        fitting.then(|| parts.iter().filter_map(|part| part.parse().ok()).collect())
    };
    let date = numbers(date, '-', &[4, 2, 2]).ok_or_else(wrong)?;
    let clock = numbers(clock, ':', &[2, 2, 2]).ok_or_else(wrong)?;
    let (&[year, month, day], &[hour, minute, ref second @ ..]) = (&date[..], &clock[..]) else {
        return Err(wrong());
    };
    let second = second.first().copied().unwrap_or(0);
    let valid = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    u32::try_from(seconds).ok().filter(|_| valid).ok_or_else(wrong)
}

fn days_of(year: i64, month: i64) -> i64 {
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next_month, 1) - days(year, month, 1)
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Counted from March, so that a leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let to_march = |year: i64| 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    to_march(year) + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_utc() {
        for (text, seconds) in [
            ("0", 0),
            ("4294967295", u32::MAX),
            ("1970-01-01", 0),
            ("1970-01-01T00:01", 60),
            ("2000-02-29 00:00:00", 951_782_400),
            ("2001-09-09T01:46:40Z", 1_000_000_000),
            ("2024-12-31T23:59:59", 1_735_689_599),
        ] {
            assert_eq!(parse(text), Ok(seconds), "{text}");
        }
        for text in [
            "",
            "-1",
            "4294967296",
            "2024x",
            "2024-13-01",
            "2023-02-29",
            "2024-1-1",
            "2024-01-01T24:00",
            "2024-01-01T12",
            "1969-12-31",
            "2024-01-01T12:00+01",
            "yesterday",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
