//! What the figures were taken on.

use crate::table::Figure;

pub(crate) fn describe(directory: &str) -> Vec<Figure> {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    vec![
        Figure::new("processor", processor()),
        Figure::new("cores", cores.to_string()),
        Figure::new("memory", memory()),
        Figure::new("kernel", read("/proc/sys/kernel/osrelease").trim()),
        Figure::new("file system", file_system(directory)),
        Figure::new("horolog", env!("CARGO_PKG_VERSION")),
    ]
}

#[expect(clippy::disallowed_methods, reason = "the kernel's own files, not data")]
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The value of `field` in a file of lines such as `MemTotal:  16384 kB`.
pub(crate) fn field<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim_start().strip_prefix(':')?.trim())
}

fn processor() -> String {
    field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown").to_owned()
}

fn memory() -> String {
    let text = read("/proc/meminfo");
    let kib = field(&text, "MemTotal").and_then(|value| value.split(' ').next()?.parse().ok());
    let kib: u64 = kib.unwrap_or(0);
    format!("{} MiB", kib / 1024)
}

/// The type of the file system that `directory` is on: of its longest mount point.
fn file_system(directory: &str) -> String {
    let mounts = read("/proc/self/mounts");
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, point, kind) = (words.next()?, words.next()?, words.next()?);
        directory.starts_with(point).then_some((point.len(), device, kind))
    });
    let (_, device, kind) = mounted.max().unwrap_or((0, "unknown", "unknown"));
    format!("{kind} on {device}")
}
