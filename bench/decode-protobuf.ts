/**
 * Protobuf orders of 90 bytes, the content of the other benchmarks' Avro orders, into columns on one core: payloads in
 * memory, beside protobuf-go, which makes structs of them. Both read the same bytes and add them up; CPU time alone counts,
 * since the machine may be shared.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { protobufCodec } from "../src/core/codecs/protobuf/compile.ts";
import { registryOf } from "../src/core/codecs/protobuf/descriptors.ts";
import type { Payloads } from "../src/core/codecs/record-codec.ts";
import { builderOf, type ColumnBuilder } from "../src/core/types/column-builder.ts";
import type { Value } from "../src/core/types/value.ts";
import {
  type BenchOptions,
  cpuSeconds,
  type Figure,
  inTurn,
  median,
  ratioOf,
  round,
  sameHash,
} from "./figure.ts";
import { orderJson } from "./orders.ts";
import { runProcess } from "./process.ts";

const root = resolve(import.meta.dir, "..");
const FOLDER = join(root, "bench/peers/protobuf-go");
const PEER = join(root, ".cache/bench/protobuf-go");
/** Payloads of a batch, as a lane gets them of fetched data. */
const BATCH = 4000;
const PASSES = 6;

interface Order {
  readonly id: number;
  readonly customer: string;
  readonly ts: string;
  readonly amount: string;
  readonly country: string;
  readonly items: readonly { readonly sku: string; readonly qty: number; readonly price: string }[];
  readonly flags: { readonly gift: boolean; readonly express: boolean };
}

const text = (value: string): Value => ({ kind: "string", value });
const record = (fields: Readonly<Record<string, Value>>): Value => ({
  kind: "record",
  fields: Object.entries(fields).map(([name, value]) => ({ name, value })),
});

function orderValue(o: Order): Value {
  const items = o.items.map(({ sku, qty, price }) =>
    record({ sku: text(sku), qty: { kind: "int", value: qty }, price: text(price) }),
  );
  return record({
    id: { kind: "long", value: BigInt(o.id) },
    customer: text(o.customer),
    ts: { kind: "long", value: BigInt(Date.parse(o.ts)) },
    amount: text(o.amount),
    country: text(o.country),
    items: { kind: "list", items },
    flags: record({
      gift: { kind: "bool", value: o.flags.gift },
      express: { kind: "bool", value: o.flags.express },
    }),
  });
}

type Codec = ReturnType<typeof protobufCodec>;

function payloadsOf({ encoder }: Codec, n: number): Payloads {
  const parts = Array.from({ length: n }, (_, i) =>
    encoder.encode(orderValue(JSON.parse(orderJson(i)) as Order)),
  );
  const ends = new Int32Array(n);
  let at = 0;
  for (const [i, p] of parts.entries()) {
    at += p.length;
    ends[i] = at;
  }
  const starts = Int32Array.from(ends, (_, i) => (i === 0 ? 0 : ends[i - 1]!));
  return { bytes: Uint8Array.from(Buffer.concat(parts)), starts, ends, count: n };
}

interface Round {
  readonly wall: number;
  readonly cpu: number;
  readonly sums: readonly number[];
}

/** What the peer adds up: ids, items, quantities, bytes of item names. */
function add(sums: number[], columns: readonly ColumnBuilder[], rows: number): void {
  const [id, , , , , items] = columns.map((c) => c.finish());
  const ids = new Int32Array(id!.data.buffer, 0, 2 * rows);
  // Orders are numbered from 0: the upper halves are 0.
  for (let i = 0; i < rows; i++) sums[0]! += ids[2 * i]!;
  const item = items!.children[0]!;
  const quantities = new Int32Array(item.children[1]!.data.buffer, 0, item.length);
  sums[1]! += item.length;
  for (let i = 0; i < item.length; i++) sums[2]! += quantities[i]!;
  sums[3]! += item.children[0]!.data.length;
}

function pass({ decoder }: Codec, { bytes, starts, ends, count }: Payloads): Round {
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const sums = [0, 0, 0, 0];
  const began = performance.now();
  const before = cpuSeconds();
  for (let i = 0; i < count; i += BATCH) {
    for (const c of columns) c.reset();
    const to = Math.min(count, i + BATCH);
    const batch = { bytes, starts: starts.subarray(i, to), ends: ends.subarray(i, to), count: to - i };
    const rows = decoder.decode(batch, columns, ({ reason }) => {
      throw new Error(reason);
    });
    add(sums, columns, rows);
  }
  return { wall: (performance.now() - began) / 1000, cpu: cpuSeconds() - before, sums };
}

async function peerOf(o: BenchOptions): Promise<boolean> {
  if (existsSync(PEER)) return true;
  if (Bun.which("go") === null) {
    o.say("SKIP protobuf-go: there is no Go here, so there is no peer");
    return false;
  }
  try {
    await runProcess([join(FOLDER, "build.sh"), PEER]);
    return true;
  } catch (e) {
    o.say(`SKIP protobuf-go: it does not build: ${String(e).slice(0, 300)}`);
    return false;
  }
}

export async function* decodeProtobuf(o: BenchOptions): AsyncGenerator<Figure> {
  const n = o.small ? 4000 : 400_000;
  const source = await Bun.file(join(FOLDER, "orders.proto")).text();
  const schema = {
    format: "protobuf",
    text: source,
    references: [],
    id: "1",
    subject: null,
    version: null,
  } as const;
  const codec = protobufCodec(registryOf(schema), {});
  const payloads = payloadsOf(codec, n);
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-protobuf-"));
  try {
    const files = [join(folder, "payloads"), join(folder, "ends")];
    writeFileSync(files[0]!, payloads.bytes);
    writeFileSync(files[1]!, payloads.ends);
    const least = (rounds: readonly Round[]) => rounds.reduce((a, b) => (b.cpu < a.cpu ? b : a));
    const subject = async () => least(Array.from({ length: PASSES }, () => pass(codec, payloads)));
    const peer = async () => JSON.parse((await runProcess([PEER, ...files, String(PASSES)])).stdout) as Round;
    const found = await inTurn(o.rounds, subject, (await peerOf(o)) ? peer : null);
    const hash = sameHash(
      "orders",
      [...found.subject, ...found.peer].map((r) => r.sums.join("/")),
    );
    const cpu = median(found.subject.map((r) => r.cpu));
    const peerCpu = found.peer.length === 0 ? null : median(found.peer.map((r) => r.cpu));
    const value = round(n / cpu);
    const peerValue = peerCpu === null ? null : round(n / peerCpu);
    yield {
      bench: "decode-protobuf",
      subject: `orders of ${Math.round(payloads.bytes.length / n)} B into columns`,
      peer: peerCpu === null ? null : "protobuf-go into structs",
      unit: "records per CPU second",
      value,
      peer_value: peerValue,
      ratio: ratioOf(value, peerValue),
      hash,
      n,
      cpu_per_million: round(cpu / (n / 1e6)),
      peer_cpu_per_million: peerCpu === null ? null : round(peerCpu / (n / 1e6)),
      wall_records_per_second: round(n / median(found.subject.map((r) => r.wall))),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
