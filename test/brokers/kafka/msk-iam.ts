/**
 * The broker's side of AWS_MSK_IAM: takes the payload apart and computes the signature anew by the public description of
 * Signature Version 4 (query parameters), with nothing of the SDK that signed it.
 */
import { createHash, createHmac } from "node:crypto";

export interface IamKey {
  readonly secret: string;
  readonly sessionToken: string | null;
}

export interface IamServer {
  readonly region: string;
  /** By access key id. */
  readonly keys: Readonly<Record<string, IamKey>>;
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** RFC 3986: everything but unreserved characters. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

export function signingKey(secret: string, date: string, region: string, service: string): Buffer {
  const steps = [date, region, service, "aws4_request"];
  return steps.reduce<Buffer>((key, text) => hmac(key, text), Buffer.from(`AWS4${secret}`));
}

/** Parameters without the signature, by their names of the query. */
export function signatureOf(query: Readonly<Record<string, string>>, host: string, secret: string): string {
  const [, date = "", region = "", service = ""] = (query["X-Amz-Credential"] ?? "").split("/");
  const canonicalQuery = Object.entries(query)
    .map(([k, v]) => `${encoded(k)}=${encoded(v)}`)
    .sort()
    .join("&");
  const request = ["GET", "/", canonicalQuery, `host:${host}`, "", "host", sha256("")].join("\n");
  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, sha256(request)].join("\n");
  return hmac(signingKey(secret, date, region, service), text).toString("hex");
}

/** In the payload all names are in small letters. */
const NAMES: Readonly<Record<string, string>> = {
  action: "Action",
  "x-amz-algorithm": "X-Amz-Algorithm",
  "x-amz-credential": "X-Amz-Credential",
  "x-amz-date": "X-Amz-Date",
  "x-amz-expires": "X-Amz-Expires",
  "x-amz-signedheaders": "X-Amz-SignedHeaders",
  "x-amz-security-token": "X-Amz-Security-Token",
};

function momentOf(stamp: string): number {
  const m = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp);
  return m === null ? Number.NaN : Date.parse(`${m[1]}-${m[2]}-${m[3]}T${m[4]}:${m[5]}:${m[6]}Z`);
}

/** Null: let in. Else why not. */
export function judgeIam(server: IamServer, payload: Uint8Array, nowMs: number): string | null {
  const fields = JSON.parse(Buffer.from(payload).toString("utf8")) as Record<string, string>;
  const { version, host = "", "user-agent": agent, "x-amz-signature": signature, ...rest } = fields;
  if (version !== "2020_10_22" || agent === undefined) return "no payload of that version";
  const query: Record<string, string> = {};
  for (const [name, value] of Object.entries(rest)) {
    const known = NAMES[name];
    if (known === undefined) return `unknown field ${name}`;
    query[known] = value;
  }
  if (query["Action"] !== "kafka-cluster:Connect") return "another action";
  const [id = "", , region, service] = (query["X-Amz-Credential"] ?? "").split("/");
  const key = Object.hasOwn(server.keys, id) ? server.keys[id] : undefined;
  if (key === undefined) return "an unknown access key";
  if (region !== server.region || service !== "kafka-cluster") return "another region or service";
  if ((query["X-Amz-Security-Token"] ?? null) !== key.sessionToken) return "another session token";
  const age = nowMs - momentOf(query["X-Amz-Date"] ?? "");
  const life = Number(query["X-Amz-Expires"]) * 1000;
  if (!(life > 0 && life <= 900_000 && age >= -300_000 && age <= life)) return "it has expired";
  return signature === signatureOf(query, host, key.secret) ? null : "the signature is wrong";
}
