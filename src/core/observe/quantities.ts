/** Numbers for people: log text, the progress line and the status page share one way to write them. */

const THOUSANDS = ["", "k", "M", "G", "T", "P"] as const;
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Three significant digits, `base` steps between units; exact below the first step. */
function scaled(value: number, base: number, units: readonly string[]): readonly [string, string] {
  if (!Number.isFinite(value)) return ["?", units[0] ?? ""];
  let rest = Math.abs(value);
  let unit = 0;
  // 999.5 would print as 1000: it belongs to the next unit.
  while (rest >= (unit === 0 ? base : base * 0.9995) && unit < units.length - 1) {
    rest /= base;
    unit++;
  }
  const digits = unit === 0 ? (Number.isInteger(rest) ? 0 : 1) : rest < 9.995 ? 2 : rest < 99.95 ? 1 : 0;
  return [`${value < 0 ? "-" : ""}${rest.toFixed(digits)}`, units[unit] ?? ""];
}

/** `1234` -> `1.23k`. */
export function formatCount(value: number): string {
  return scaled(value, 1000, THOUSANDS).join("");
}

/** `1572864` -> `1.50 MiB`. */
export function formatBytes(value: number): string {
  return scaled(value, 1024, BINARY).join(" ");
}

/** Milliseconds as `850 ms`, `12.5 s`, `3 m 20 s`, `2 h 5 m`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "?";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}
