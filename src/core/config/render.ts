/** Option values as TOML text, for the starter file, the reference page and `explain`. Secrets come out masked. */
import { formatBytes, formatMs } from "./option-types.ts";
import { FileRef, Secret, SecretRef } from "./secret.ts";

/** `unit` chooses the readable form of bytes and milliseconds. */
export function tomlValue(value: unknown, unit = ""): string {
  if (typeof value === "number") return numberText(value, unit);
  if (typeof value === "string" || value instanceof Secret) return JSON.stringify(String(value));
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value instanceof SecretRef) return `{ secret = ${JSON.stringify(value.name)} }`;
  if (value instanceof FileRef) return `{ file = ${JSON.stringify(value.path)} }`;
  if (Array.isArray(value)) return `[${value.map((v) => tomlValue(v, unit)).join(", ")}]`;
  if (isHostPort(value)) return JSON.stringify(hostPortText(value));
  if (typeof value === "object" && value !== null) {
    const pairs = Object.entries(value).filter(([, v]) => v !== undefined);
    if (pairs.length === 0) return "{}";
    return `{ ${pairs.map(([k, v]) => `${tomlKey(k)} = ${tomlValue(v, unit)}`).join(", ")} }`;
  }
  return '""';
}

export function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

function numberText(value: number, unit: string): string {
  if (unit === "bytes" || unit === "bytes/s") return JSON.stringify(formatBytes(value));
  return unit === "ms" && value >= 1000 ? JSON.stringify(formatMs(value)) : String(value);
}

function isHostPort(value: unknown): value is { readonly host: string; readonly port: number } {
  return typeof value === "object" && value !== null && "host" in value && "port" in value;
}

export function hostPortText(address: { readonly host: string; readonly port: number }): string {
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
