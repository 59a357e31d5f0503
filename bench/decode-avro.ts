/**
 * Avro orders of 77 bytes (82 with a registry's header) to columns on one core, beside Java's GenericDatumReader, hamba/avro
 * into Go structs and fastavro, each in its own process with the payloads in memory, best round. They make objects, not
 * columns.
 */

import { isUtf8 } from "node:buffer";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compileAvro } from "../src/core/codecs/avro/compile.ts";
import { avroEncoder } from "../src/core/codecs/avro/encode-value.ts";
import type { Payloads } from "../src/core/codecs/record-codec.ts";
import { builderOf } from "../src/core/types/column-builder.ts";
import type { TableColumn } from "../src/core/types/table-batch.ts";
import type { Value } from "../src/core/types/value.ts";
import { type BenchOptions, cpuSeconds, type Figure, ratioOf, round, sameHash } from "./figure.ts";
import { ORDER_AVRO, orderJson } from "./orders.ts";
import { runProcess } from "./process.ts";

/** As JSON.parse gives it, but for the instant. */
function asValue(json: unknown): Value {
  if (typeof json === "string") return { kind: "string", value: json };
  if (typeof json === "boolean") return { kind: "bool", value: json };
  if (typeof json === "number") return { kind: "long", value: BigInt(json) };
  if (Array.isArray(json)) return { kind: "list", items: json.map(asValue) };
  const fields = Object.entries(json as object).map(([name, v]) => ({
    name,
    value:
      name === "ts"
        ? ({ kind: "timestamp", unit: "ms", zone: "UTC", value: BigInt(Date.parse(v)) } as const)
        : asValue(v),
  }));
  return { kind: "record", fields };
}

function orders(count: number): Uint8Array[] {
  const encoder = avroEncoder({ text: ORDER_AVRO, references: [] });
  return Array.from({ length: count }, (_, i) => encoder.encode(asValue(JSON.parse(orderJson(i)))));
}

/** As many as a lane takes at a time. */
const BATCH = 20_000;

function batchesOf(list: readonly Uint8Array[]): Payloads[] {
  const out: Payloads[] = [];
  for (let from = 0; from < list.length; from += BATCH) {
    const some = list.slice(from, from + BATCH);
    const starts = new Int32Array(some.length);
    const ends = new Int32Array(some.length);
    let at = 0;
    for (const [i, p] of some.entries()) {
      starts[i] = at;
      at += p.length;
      ends[i] = at;
    }
    out.push({ bytes: new Uint8Array(Buffer.concat(some)), starts, ends, count: some.length });
  }
  return out;
}

interface Measured {
  readonly records_per_second: number;
  readonly cpu_per_million: number;
  /** Of ids and numbers of items. */
  readonly sum: number;
}

/** What the peers add up, in whole columns. */
function sumOf([id, , , , , items]: readonly TableColumn[]): number {
  const words = new Int32Array(id!.data.buffer, id!.data.byteOffset, 2 * id!.length);
  let sum = items!.offsets![items!.length]!;
  for (let i = 0; i < id!.length; i++) sum += words[2 * i]!;
  return sum;
}

function measure(list: readonly Uint8Array[], rounds: number): Measured {
  const decoder = compileAvro({ writer: { text: ORDER_AVRO, references: [] } }, { isUtf8: (b) => isUtf8(b) });
  const columns = decoder.fields.map((f) => builderOf(f.type));
  const batches = batchesOf(list);
  let [best, bestCpu, sum] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
  for (let r = 0; r < rounds; r++) {
    const [begun, cpu] = [performance.now(), cpuSeconds()];
    sum = 0;
    for (const batch of batches) {
      for (const c of columns) c.reset();
      const rows = decoder.decode(batch, columns, (f) => {
        throw new Error(f.reason);
      });
      if (rows !== batch.count) throw new Error(`${rows} rows of ${batch.count}`);
      sum += sumOf(columns.map((c) => c.finish()));
    }
    best = Math.min(best, (performance.now() - begun) / 1000);
    bestCpu = Math.min(bestCpu, cpuSeconds() - cpu);
  }
  return { records_per_second: list.length / best, cpu_per_million: (bestCpu / list.length) * 1e6, sum };
}

const FASTAVRO = `
import fastavro, io, json, resource, struct, sys, time
schema = fastavro.parse_schema(json.load(open(sys.argv[1])))
file = open(sys.argv[2], "rb").read()
payloads = []
at = 0
while at < len(file):
    n = struct.unpack_from(">I", file, at)[0]
    payloads.append(file[at + 4 : at + 4 + n])
    at += 4 + n
best = best_cpu = 1e9
for _ in range(int(sys.argv[3])):
    begun, cpu = time.perf_counter(), time.process_time()
    total = 0
    for p in payloads:
        r = fastavro.schemaless_reader(io.BytesIO(p), schema, None)
        total += r["id"] + len(r["items"])
    best, best_cpu = min(best, time.perf_counter() - begun), min(best_cpu, time.process_time() - cpu)
print(json.dumps({"records_per_second": len(payloads) / best, "cpu_per_million": best_cpu / len(payloads) * 1e6, "sum": total}))
`;

const HAMBA = ".cache/bench/hamba-avro";

type Peer = readonly [name: string, command: (schema: string, payloads: string, rounds: string) => string[]];

/** Those that can be had here. */
async function peersOf({ say }: BenchOptions): Promise<Peer[]> {
  const peers: Peer[] = [];
  try {
    const [classes, python] = (await runProcess(["scripts/avro-peers.sh"])).stdout.trim().split("\n") as [
      string,
      string,
    ];
    const java = ["java", "-cp", classes, "bench/peers/avro/AvroPeer.java", "bench"];
    peers.push(["Java GenericDatumReader", (...args) => [...java, ...args]]);
    peers.push(["fastavro", (...args) => [python, "-c", FASTAVRO, ...args]]);
  } catch (e) {
    say(`SKIP Java's Avro and fastavro: ${String(e).slice(0, 300)}`);
  }
  try {
    if (!existsSync(HAMBA)) await runProcess(["bench/peers/hamba-avro/build.sh", join(process.cwd(), HAMBA)]);
    peers.push(["hamba/avro", (...args) => [HAMBA, ...args]]);
  } catch (e) {
    say(`SKIP hamba/avro: it does not build: ${String(e).slice(0, 300)}`);
  }
  return peers;
}

export async function* decodeAvro(o: BenchOptions): AsyncGenerator<Figure> {
  const list = orders(o.small ? 5_000 : 200_000);
  const rounds = o.small ? 3 : 40;
  const folder = mkdtempSync(join(tmpdir(), "twg-bench-"));
  try {
    const [schema, payloads] = [join(folder, "orders.avsc"), join(folder, "payloads")];
    await Bun.write(schema, ORDER_AVRO);
    const sized = list.flatMap((p) => [new Uint8Array(new DataView(new ArrayBuffer(4)).buffer), p]);
    for (let i = 0; i < sized.length; i += 2)
      new DataView(sized[i]!.buffer).setUint32(0, sized[i + 1]!.length);
    await Bun.write(payloads, Buffer.concat(sized));
    for (const [peer, command] of await peersOf(o)) {
      const ours = measure(list, rounds);
      const peerRounds = peer === "fastavro" ? Math.min(rounds, 3) : rounds;
      const ran = await runProcess(command(schema, payloads, String(peerRounds)));
      const theirs = JSON.parse(ran.stdout) as Measured;
      yield {
        bench: "decode-avro",
        subject: "columns",
        peer,
        unit: "records/s",
        value: round(ours.records_per_second),
        peer_value: round(theirs.records_per_second),
        ratio: ratioOf(ours.records_per_second, theirs.records_per_second),
        hash: sameHash("decode-avro", [String(ours.sum), String(theirs.sum)]),
        n: list.length,
        cpu_per_million: round(ours.cpu_per_million),
        peer_cpu_per_million: round(theirs.cpu_per_million),
      };
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
