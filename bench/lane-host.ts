/**
 * What a lane's host costs: a Worker that is handed buffers by transfer, against a child process that is handed the
 * same bytes through a pipe. Decides docs/decisions/0001.
 *
 *   bun bench/lane-host.ts [--json] [--small]
 *
 * Round trip: an empty request and its answer, one at a time. Throughput: buffers of 1 MiB, filled and handed over,
 * at most 8 on their way; the lane reads every byte (a sum of words) and answers with it, so that nothing can be
 * left out. Both kinds return the same sum or the run fails.
 */
import { parseArgs } from "node:util";

const BUFFER = 1 << 20;
const IN_FLIGHT = 8;

interface Host {
  /** Resolves with the sum of the buffer's words. The buffer is the lane's afterwards. */
  send(buffer: ArrayBuffer): Promise<number>;
  /** Ends it and resolves with the CPU time, s, of a process of its own (0: it shares ours). */
  end(): Promise<number>;
}

function sum(words: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < words.length; i++) total = (total + words[i]!) | 0;
  return total;
}

// The lane's side, by role.

declare const self: Worker;

function workerLane(): void {
  self.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const answer = sum(new Uint32Array(data));
    postMessage({ answer, buffer: data }, [data]); // goes back to the pool
  };
}

/** Frames: length (uint32), then the bytes. Answers: the sum (int32). */
async function childLane(): Promise<void> {
  const frame = new Uint8Array(BUFFER);
  const head = new Uint8Array(4);
  let headed = 0;
  let filled = 0;
  let length = -1;
  const out = Bun.stdout.writer();
  for await (const chunk of Bun.stdin.stream()) {
    for (let at = 0; at < chunk.length; ) {
      if (length < 0) {
        head[headed++] = chunk[at++]!;
        if (headed < 4) continue;
        length = new DataView(head.buffer).getUint32(0, true);
        headed = 0;
        filled = 0;
      } else {
        const n = Math.min(length - filled, chunk.length - at);
        frame.set(chunk.subarray(at, at + n), filled);
        filled += n;
        at += n;
      }
      if (length >= 0 && filled === length) {
        out.write(new Uint8Array(Int32Array.of(sum(new Uint32Array(frame.buffer, 0, length / 4))).buffer));
        await out.flush();
        length = -1;
      }
    }
  }
}

// The control thread's side.

function workerHost(): Host {
  const worker = new Worker(import.meta.url, { env: { ...process.env, LANE_HOST_ROLE: "worker" } });
  const waiting: ((sum: number) => void)[] = [];
  worker.onmessage = (e: MessageEvent<{ answer: number }>) => waiting.shift()?.(e.data.answer);
  worker.onerror = (e) => {
    console.error(e.message);
    process.exit(1);
  };
  return {
    send: (buffer) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        worker.postMessage(buffer, [buffer]);
      }),
    end: async () => {
      worker.terminate();
      return 0;
    },
  };
}

function childHost(): Host {
  const child = Bun.spawn([process.execPath, import.meta.path], {
    env: { ...process.env, LANE_HOST_ROLE: "child" },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const waiting: ((sum: number) => void)[] = [];
  void readAnswers(child.stdout, (answer) => waiting.shift()?.(answer));
  return {
    send: async (buffer) => {
      const answered = new Promise<number>((resolve) => waiting.push(resolve));
      child.stdin.write(new Uint8Array(Uint32Array.of(buffer.byteLength).buffer));
      child.stdin.write(new Uint8Array(buffer));
      await child.stdin.flush();
      return answered;
    },
    end: async () => {
      await child.stdin.end();
      await child.exited;
      return Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
    },
  };
}

async function readAnswers(stream: ReadableStream<Uint8Array>, answer: (sum: number) => void): Promise<void> {
  let rest = new Uint8Array(0);
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, chunk]);
    let at = 0;
    for (; at + 4 <= bytes.length; at += 4) answer(bytes.readInt32LE(at));
    rest = bytes.subarray(at);
  }
}

// Measuring.

function filled(i: number): ArrayBuffer {
  const words = new Uint32Array(BUFFER / 4);
  words.fill(i + 1);
  return words.buffer;
}

interface Figures {
  readonly roundTripUs: number;
  readonly mbPerS: number;
  readonly cpuPerGb: number;
  readonly check: number;
}

async function measure(host: Host, trips: number, buffers: number): Promise<Figures> {
  for (let i = 0; i < 20; i++) await host.send(new ArrayBuffer(4));
  const t0 = performance.now();
  for (let i = 0; i < trips; i++) await host.send(new ArrayBuffer(4));
  const roundTripUs = ((performance.now() - t0) * 1000) / trips;

  let next = 0;
  let check = 0;
  const cpu0 = process.cpuUsage();
  const t1 = performance.now();
  const pump = async () => {
    while (next < buffers) check = (check + (await host.send(filled(next++)))) | 0;
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, pump));
  const seconds = (performance.now() - t1) / 1000;
  const cpu = process.cpuUsage(cpu0);
  const childCpu = await host.end();
  const mb = (buffers * BUFFER) / 1e6;
  const cpuPerGb = ((cpu.user + cpu.system) / 1e6 + childCpu) / (mb / 1000);
  return { roundTripUs, mbPerS: mb / seconds, cpuPerGb, check };
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: "boolean" }, small: { type: "boolean" } } });
  const [trips, buffers] = values.small ? [200, 100] : [5000, 4000];
  const child = await measure(childHost(), trips, buffers);
  const worker = await measure(workerHost(), trips, buffers);
  if (worker.check !== child.check) throw new Error("the two hosts did not read the same bytes");
  const rows: [string, string, number, number][] = [
    ["round trip", "us", worker.roundTripUs, child.roundTripUs],
    ["1 MiB buffers", "MB/s", worker.mbPerS, child.mbPerS],
    ["1 MiB buffers, CPU of both sides", "CPU-s/GB", worker.cpuPerGb, child.cpuPerGb],
  ];
  for (const [bench, unit, value, peer] of rows) {
    const round = (n: number) => Number(n.toPrecision(4));
    const line = {
      bench: `lane-host ${bench}`,
      subject: "worker",
      peer: "child process",
      unit,
      value: round(value),
    };
    const rest = {
      peer_value: round(peer),
      ratio: round(value / peer),
      hash: (worker.check >>> 0).toString(16),
      n: buffers,
    };
    if (values.json) console.log(JSON.stringify({ ...line, ...rest }));
    else console.log(`${bench}: worker ${line.value} ${unit}, child process ${rest.peer_value} ${unit}`);
  }
}

const role = process.env["LANE_HOST_ROLE"];
if (role === "worker") workerLane();
else if (role === "child") await childLane();
else await main();
