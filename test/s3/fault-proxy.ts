/**
 * An HTTP proxy before a real S3 server that does to single requests what networks, load balancers and overloaded
 * stores do. It passes bytes on as they are, so signatures stay valid; it reads just enough of HTTP/1.1 to know where a
 * message ends. Requests of one connection are taken in turn.
 */
import { connect, createServer, type Server, type Socket } from "node:net";

export type S3Operation =
  | "CreateUpload"
  | "UploadPart"
  | "Complete"
  | "Abort"
  | "ListParts"
  | "ListUploads"
  | "Head"
  | "Get"
  | "Put"
  | "List"
  | "Delete"
  | "Other";

export interface ProxiedRequest {
  readonly operation: S3Operation;
  /** With the bucket, undecoded, as it stands in the request. */
  readonly path: string;
  /** Counts the requests of this proxy. */
  readonly serial: number;
}

export type Fault =
  | { readonly t: "pass" }
  | { readonly t: "delay"; readonly ms: number }
  /** The store answers so and does nothing. */
  | { readonly t: "answer"; readonly status: number; readonly code: string }
  /** The store does it; somebody on the way answers so. */
  | { readonly t: "answer_after"; readonly status: number; readonly code: string }
  /** 200, and an error in the body; with or without having done it. */
  | { readonly t: "error_body"; readonly done: boolean }
  /** Cut before the store sees it, within its body, or within the answer; or the whole answer is lost. */
  | { readonly t: "cut" | "cut_body" | "cut_answer" | "lose" }
  /** Somebody on the way sends it twice and hands on the second answer. */
  | { readonly t: "twice" };

export type Decide = (request: ProxiedRequest) => Fault;

const PASS: Fault = { t: "pass" };

export class FaultProxy {
  readonly port: number;
  /** What is done to the next requests; may be changed at any time. */
  decide: Decide;
  /** Requests so far, by operation, and faults that were done, by kind. */
  readonly seen = new Map<S3Operation, number>();
  readonly done = new Map<Fault["t"], number>();
  readonly #server: Server;
  readonly #upstream: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #serial = 0;

  private constructor(server: Server, port: number, upstream: URL, decide: Decide) {
    this.#server = server;
    this.port = port;
    this.#upstream = { host: upstream.hostname, port: Number(upstream.port) };
    this.decide = decide;
  }

  static async start(upstream: string, decide: Decide = () => PASS): Promise<FaultProxy> {
    let proxy: FaultProxy | null = null;
    const server = createServer((socket) => proxy?.accept(socket));
    await new Promise<void>((go, fail) => {
      server.once("error", fail);
      server.listen(0, "127.0.0.1", go);
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    proxy = new FaultProxy(server, port, new URL(upstream), decide);
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    for (const s of this.#sockets) s.destroy();
    await new Promise<void>((go) => this.#server.close(() => go()));
  }

  accept(client: Socket): void {
    this.#track(client);
    void this.#serve(client).catch(() => client.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }

  async #serve(client: Socket): Promise<void> {
    const from = new Messages(client);
    let upstream: Upstream | null = null;
    for (;;) {
      const request = await from.message("request");
      if (request === null) break;
      const known = this.#known(request);
      const fault = this.decide(known);
      count(this.seen, known.operation);
      count(this.done, fault.t);
      if (fault.t === "cut") break;
      if (fault.t === "delay") await Bun.sleep(fault.ms);
      const instead = answerInstead(fault, request.method);
      if (instead !== null) {
        client.write(instead);
        continue;
      }
      upstream ??= await this.#dial(client);
      const answer = await forwarded(upstream, request, fault);
      if (answer === null || !handOn(client, answer, fault, request.method)) break;
      if (answer.closes) upstream = null;
    }
    // What was written last goes out before the end.
    await Bun.sleep(5);
    client.destroy();
    upstream?.socket.destroy();
  }

  async #dial(client: Socket): Promise<Upstream> {
    const socket = connect(this.#upstream);
    this.#track(socket);
    client.once("close", () => socket.destroy());
    await new Promise<void>((go, fail) => {
      socket.once("connect", go);
      socket.once("error", fail);
    });
    return { socket, messages: new Messages(socket) };
  }

  #known(request: Message): ProxiedRequest {
    const [path = "", query = ""] = request.target.split("?");
    return {
      operation: operationOf(request.method, path, new URLSearchParams(query)),
      path,
      serial: this.#serial++,
    };
  }
}

function count<K>(map: Map<K, number>, key: K): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

/** The answer of a store that does nothing, or null if it is asked. */
function answerInstead(fault: Fault, method: string): Uint8Array | null {
  if (fault.t === "answer") return errorAnswer(fault.status, fault.code, method);
  return fault.t === "error_body" && !fault.done ? errorAnswer(200, "InternalError", method) : null;
}

/** Null: there is nothing to hand on. */
async function forwarded(upstream: Upstream, request: Message, fault: Fault): Promise<Message | null> {
  if (fault.t === "cut_body") {
    upstream.socket.write(request.bytes.subarray(0, Math.floor(request.bytes.length / 2)));
    await Bun.sleep(20);
    return null;
  }
  const answer = await exchange(upstream, request);
  return fault.t === "twice" && answer !== null ? exchange(upstream, request) : answer;
}

/** False: the connection ends here. */
function handOn(client: Socket, answer: Message, fault: Fault, method: string): boolean {
  switch (fault.t) {
    case "lose":
      return false;
    case "cut_answer":
      client.write(answer.bytes.subarray(0, Math.floor(answer.bytes.length / 2)));
      return false;
    case "answer_after":
      client.write(errorAnswer(fault.status, fault.code, method));
      return true;
    case "error_body":
      client.write(errorAnswer(200, "InternalError", method));
      return true;
    default:
      client.write(answer.bytes);
      return true;
  }
}

async function exchange(upstream: Upstream, request: Message): Promise<Message | null> {
  upstream.socket.write(request.bytes);
  return upstream.messages.message("answer", request.method);
}

function operationOf(method: string, path: string, query: URLSearchParams): S3Operation {
  if (query.has("uploads")) return method === "POST" ? "CreateUpload" : "ListUploads";
  if (query.has("uploadId")) {
    const known: Record<string, S3Operation> = {
      PUT: "UploadPart",
      POST: "Complete",
      DELETE: "Abort",
      GET: "ListParts",
    };
    return known[method] ?? "Other";
  }
  if (query.has("list-type")) return "List";
  const known: Record<string, S3Operation> = { HEAD: "Head", GET: "Get", PUT: "Put", DELETE: "Delete" };
  return path.split("/").length > 2 ? (known[method] ?? "Other") : "Other";
}

function errorAnswer(status: number, code: string, method: string): Uint8Array {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>made by the test's proxy</Message></Error>`;
  const head = `HTTP/1.1 ${status} Fault\r\nContent-Type: application/xml\r\nContent-Length: ${xml.length}\r\n\r\n`;
  return new TextEncoder().encode(method === "HEAD" ? head : head + xml);
}

interface Upstream {
  readonly socket: Socket;
  readonly messages: Messages;
}

interface Message {
  /** Of the request; empty for an answer. */
  readonly method: string;
  readonly target: string;
  /** Head and body, as they came. */
  readonly bytes: Uint8Array;
  readonly closes: boolean;
}

/** Cuts the bytes of a socket into HTTP messages. */
class Messages {
  #chunks: Buffer[] = [];
  #size = 0;
  /** Bytes without which the next message cannot be whole. */
  #wanted = 0;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(socket: Socket) {
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      this.#wake?.();
    });
    const end = () => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on("end", end);
    socket.on("close", end);
    socket.on("error", end);
  }

  /** Null: the other side closed before a whole one came. */
  async message(kind: "request" | "answer", method = ""): Promise<Message | null> {
    for (;;) {
      if (this.#size > 0 && this.#size >= this.#wanted) {
        const found = this.#cut(kind, method);
        if (found !== null) return found;
      }
      if (this.#ended) return null;
      await new Promise<void>((go) => {
        this.#wake = go;
      });
      this.#wake = null;
    }
  }

  #cut(kind: "request" | "answer", asked: string): Message | null {
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    this.#wanted = 0;
    const headEnd = bytes.indexOf("\r\n\r\n");
    if (headEnd < 0) return null;
    const head = bytes.toString("latin1", 0, headEnd);
    const end = this.#endOf(bytes, head, headEnd + 4, kind, asked);
    if (end === null) return null;
    const [method = "", target = ""] = kind === "request" ? head.split(" ") : [];
    this.#chunks = end === bytes.length ? [] : [bytes.subarray(end)];
    this.#size = bytes.length - end;
    this.#wanted = 0;
    return { method, target, bytes: bytes.subarray(0, end), closes: /^connection: *close/im.test(head) };
  }

  /** Where the message ends; null: not all of it is here. */
  #endOf(
    bytes: Buffer,
    head: string,
    body: number,
    kind: "request" | "answer",
    method: string,
  ): number | null {
    const status = kind === "answer" ? Number(head.split(" ")[1]) : 0;
    if (method === "HEAD" || status === 204 || status === 304) return body;
    if (/^transfer-encoding: *chunked/im.test(head)) return endOfChunks(bytes, body);
    const end = body + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    this.#wanted = end;
    return bytes.length >= end ? end : null;
  }
}

function endOfChunks(bytes: Buffer, from: number): number | null {
  for (let at = from; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    at = line + 2 + size + 2;
    if (at > bytes.length) return null;
    if (size === 0) return at;
  }
}
