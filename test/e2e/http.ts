/** The HTTP side of a running twg that listens on any free port (`listen = "127.0.0.1:0"`). */
import { SECRETS, type Twg } from "./twg.ts";
import { until } from "./until.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Where it listens, by the log line that says so. */
export async function urlOf(twg: Twg): Promise<string> {
  const line = await twg.saw("http.listening");
  return String(line.fields.url);
}

export async function get(twg: Twg, path: string): Promise<Answer> {
  const answer = await fetch(new URL(path, await urlOf(twg)));
  const body = await answer.text();
  for (const secret of SECRETS) if (body.includes(secret)) throw new Error(`${path} shows a secret`);
  return { status: answer.status, body };
}

export const ready = (twg: Twg): Promise<Answer> => get(twg, "/ready");

/** The value of a metric with these labels, null if it is not there. */
export async function metric(
  twg: Twg,
  name: string,
  labels: Record<string, string> = {},
): Promise<number | null> {
  const { body } = await get(twg, "/metrics");
  const wanted = Object.entries(labels).map(([k, v]) => `${k}="${v}"`);
  for (const line of body.split("\n")) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (found === null || found[1] !== name) continue;
    if (wanted.every((w) => (found[2] ?? "").includes(w))) return Number(found[3]);
  }
  return null;
}

export const untilMetric = (twg: Twg, name: string, labels: Record<string, string>, value: number) =>
  until(`${name} to be ${value}`, async () => (await metric(twg, name, labels)) === value);
