/**
 * One question to the registry: asked at each URL in turn, from the one on that answered last, again with growing
 * pauses, and given up after so many rounds. Credentials go to the configured hosts and nowhere else.
 */
import { asFailure, Failure, failureLine } from "../../core/failure/failure.ts";
import type { Chance } from "../../core/time/chance.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { exchange, type HttpAnswer } from "../net/http.ts";
import { OidcTokens } from "../net/oidc-tokens.ts";
import { type Asked, isObject, jsonOf, notRegistry, refusal } from "./answers.ts";
import type { RegistrySettings } from "./settings.ts";

export interface RegistryParts {
  readonly clock: Clock;
  readonly chance: Chance;
}

export interface Question {
  readonly method: "GET" | "POST";
  /** From the URL's path on, with its query. */
  readonly path: string;
  readonly body: unknown;
  readonly what: string;
}

const MIME = "application/vnd.schemaregistry.v1+json";
const MAX_HOPS = 5;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 10_000;
const MAX_WORDS = 300;
const MOST_UNDER_WAY = 16;
/** Around a schema's text within an answer; escapes can double the text itself. */
const ENVELOPE_BYTES = 64 * 1024;

interface Failed {
  readonly failure: Failure;
  /** What the server asked for; 0: nothing. */
  readonly pauseMs: number;
}

export class RegistryRequests {
  #settings: RegistrySettings;
  readonly #parts: RegistryParts;
  readonly #clock: Clock;
  readonly #chance: Chance;
  #tokens: OidcTokens | null;
  readonly #life = new AbortController();
  /** Index of the URL that answered last. */
  #good = 0;
  #under = 0;
  readonly #turns: (() => void)[] = [];

  constructor(settings: RegistrySettings, parts: RegistryParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#chance = parts.chance;
    this.#tokens = startTokens(settings, parts);
  }

  get settings(): RegistrySettings {
    return this.#settings;
  }

  /** Requests from now on are made by these; those that wait for a token of before are made again. */
  renew(settings: RegistrySettings): void {
    const { login } = this.#settings;
    this.#settings = settings;
    if (JSON.stringify(settings.login) === JSON.stringify(login)) return;
    this.#tokens?.close(new Failure("oidc.unavailable", "the login of the registry was changed"));
    this.#tokens = startTokens(settings, this.#parts);
  }

  /** The JSON of the answer. Rejects with a Failure: registry.*, internal.cancelled. */
  async ask(question: Question): Promise<unknown> {
    const { attempts } = this.settings;
    for (let round = 1; ; round++) {
      const answer = await this.#round(question);
      if ("value" in answer) return answer.value;
      if (round >= attempts) throw answer.failure;
      await this.#pause(round, answer.pauseMs);
    }
  }

  /** At one URL alone, once. */
  async askAt(url: string, question: Question): Promise<unknown> {
    const answer = await this.#once(url, question);
    if ("value" in answer) return answer.value;
    throw answer.failure;
  }

  close(): void {
    const reason = new Failure("internal.cancelled", "the registry's client was closed");
    this.#life.abort(reason);
    this.#tokens?.close(reason);
  }

  /** Also for those who wait between questions: ends with the client. */
  async rest(ms: number): Promise<void> {
    await sleep(this.#clock, ms, this.#life.signal);
  }

  async #pause(round: number, askedMs: number): Promise<void> {
    const grown = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (round - 1));
    await this.rest(Math.min(LONGEST_PAUSE_MS, Math.max(askedMs, grown * (0.5 + 0.5 * this.#chance.next()))));
  }

  /** Every URL once. Throws what no other URL and no later time would answer otherwise. */
  async #round(question: Question): Promise<{ readonly value: unknown } | Failed> {
    const { urls } = this.settings;
    const failed: Failed[] = [];
    const first = this.#good;
    for (let i = 0; i < urls.length; i++) {
      const index = (first + i) % urls.length;
      const answer = await this.#once(urls[index]!, question);
      if ("value" in answer) {
        this.#good = index;
        return answer;
      }
      if (!passes(answer.failure)) throw answer.failure;
      failed.push(answer);
    }
    const [only] = failed;
    const pauseMs = Math.min(...failed.map((f) => f.pauseMs));
    return { failure: failed.length === 1 ? only!.failure : this.#together(failed), pauseMs };
  }

  #together(failed: readonly Failed[]): Failure {
    const all = failed.map((f) => failureLine(f.failure)).join("; ");
    const down = failed.some((f) => f.failure.code === "registry.unavailable");
    const code = down ? "registry.unavailable" : "registry.unreachable";
    return new Failure(code, `none of ${failed.length} registries answered: ${all}`);
  }

  /** In its turn: records may name as many schemas as there are records, and registries are small servers. */
  async #once(base: string, question: Question): Promise<{ readonly value: unknown } | Failed> {
    if (this.#under >= MOST_UNDER_WAY) await new Promise<void>((go) => void this.#turns.push(go));
    else this.#under++;
    try {
      return await this.#asked(base, question);
    } finally {
      const next = this.#turns.shift();
      if (next === undefined) this.#under--;
      else next();
    }
  }

  async #asked(base: string, question: Question): Promise<{ readonly value: unknown } | Failed> {
    const limit = new AbortController();
    const { timeoutMs } = this.settings;
    const timer = this.#clock.after(timeoutMs, () =>
      limit.abort(new Failure("net.timeout", `no whole answer within ${timeoutMs} ms`, { at: base })),
    );
    try {
      return await this.#answer(base, question, AbortSignal.any([limit.signal, this.#life.signal]));
    } catch (e) {
      const failure = asFailure(e);
      if (failure.code === "internal.cancelled" || failure.code === "internal.bug") throw failure;
      return { failure: this.#named(failure, base), pauseMs: 0 };
    } finally {
      timer.cancel();
    }
  }

  /** Whatever keeps us from asking is one code to those who wait; the message says what it is. */
  #named(failure: Failure, base: string): Failure {
    const { code, message, hint } = failure;
    const detail = { at: failure.at ?? base, cause: failure, ...(hint === null ? {} : { hint }) };
    if (code.startsWith("net.") || code === "oidc.unavailable")
      return new Failure("registry.unreachable", message, detail);
    if (code.startsWith("oidc.") || code.startsWith("sasl."))
      return new Failure("registry.denied", `no token for the registry: ${message}`, detail);
    return failure;
  }

  async #answer(
    base: string,
    question: Question,
    signal: AbortSignal,
  ): Promise<{ readonly value: unknown } | Failed> {
    const token = await this.#token();
    let answer = await this.#follow(base, question, token, signal);
    if (answer.status === 401 && token !== null && this.#tokens !== null) {
      // It was revoked, or its end was not the one that was told.
      this.#tokens.discard(token);
      answer = await this.#follow(base, question, await this.#token(), signal);
    }
    const asked = this.#about(base, question);
    const { status, body, headers } = answer;
    if (body === null && status === 200 && /json/i.test(headers.get("content-type") ?? ""))
      throw tooLarge(this.settings.maxSchemaBytes, asked);
    const value = body === null ? undefined : jsonOf(body);
    if (status === 200) {
      if (body === null) throw notRegistry("more than any schema has", asked);
      if (value === undefined) throw notRegistry(this.#beginning(body), asked);
      return { value };
    }
    const object = isObject(value) ? value : null;
    const message = object?.["message"];
    const said = typeof message === "string" ? this.#words(message) : "";
    return { failure: refusal(status, object, said, asked), pauseMs: pauseOf(headers) };
  }

  async #token(): Promise<string | null> {
    const { login } = this.settings;
    if (this.#tokens !== null) return await this.#tokens.token();
    return login.by === "token" ? login.token : null;
  }

  /** Redirects are followed a few times. Another host gets the question alone, and a changing one none. */
  async #follow(
    base: string,
    question: Question,
    token: string | null,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const ours = new Set(this.settings.urls.map((u) => new URL(u).origin));
    let url = new URL(`${base}${question.path}`);
    for (let hops = 0; ; hops++) {
      const own = ours.has(url.origin);
      const answer = await this.#send(url, question, own, token, signal);
      if (answer.status < 300 || answer.status >= 400) return answer;
      const asked = this.#about(base, question);
      const to = URL.parse(answer.headers.get("location") ?? "http://", url.href);
      if (to === null) throw notRegistry(`${answer.status} without a place to go to`, asked);
      if (hops >= MAX_HOPS) throw notRegistry(`more than ${MAX_HOPS} redirects`, asked);
      if (to.protocol !== "https:" && to.protocol !== url.protocol)
        throw notRegistry(`a redirect from ${url.protocol} to ${to.protocol}`, asked);
      const repeated = question.method === "GET" || answer.status === 307 || answer.status === 308;
      if (!repeated || (question.method === "POST" && !ours.has(to.origin)))
        throw notRegistry(`a redirect (${answer.status}) of a request that changes something`, asked);
      url = to;
    }
  }

  #send(
    url: URL,
    question: Question,
    own: boolean,
    token: string | null,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const { tls, maxSchemaBytes, section } = this.settings;
    return exchange({
      method: question.method,
      url: url.href,
      headers: {
        accept: `${MIME}, application/json`,
        ...(question.body === null ? {} : { "content-type": MIME }),
        ...(own ? this.#credentials(token) : {}),
      },
      body: question.body === null ? null : JSON.stringify(question.body),
      tls: own || tls === null ? tls : withoutCertificate(tls),
      maxBytes: 2 * maxSchemaBytes + ENVELOPE_BYTES,
      signal,
      during: "the request to the registry",
      section: tls?.section ?? `${section}.tls`,
    });
  }

  #credentials(token: string | null): Record<string, string> {
    const { login, headers } = this.settings;
    if (login.by === "password") {
      const text = Buffer.from(`${login.username}:${login.password}`).toString("base64");
      return { ...headers, authorization: `Basic ${text}` };
    }
    return token === null ? { ...headers } : { ...headers, authorization: `Bearer ${token}` };
  }

  #about(base: string, { what }: Question): Asked {
    return { what, at: base, section: this.settings.section };
  }

  #beginning(body: Uint8Array): string {
    const text = this.#words(new TextDecoder().decode(body.subarray(0, 200)));
    return text === "" ? "an empty answer" : `no JSON, it begins: ${text.slice(0, 80)}`;
  }

  /** A server's words for people: short, on one line, without what must not be printed even if it echoes it. */
  #words(text: string): string {
    const { login, headers } = this.settings;
    const secrets = Object.values(headers);
    if (login.by === "password") {
      secrets.push(login.password, Buffer.from(`${login.username}:${login.password}`).toString("base64"));
    } else if (login.by === "token") secrets.push(login.token);
    return secrets
      .filter((s) => s !== "")
      .reduce((t, secret) => t.replaceAll(secret, "***"), text)
      .replaceAll(/[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*/g, "***")
      .replaceAll(/[^\x20-\x7e]+/g, " ")
      .slice(0, MAX_WORDS);
  }
}

function startTokens({ login }: RegistrySettings, parts: RegistryParts): OidcTokens | null {
  return login.by === "oidc" ? new OidcTokens(login, parts) : null;
}

/** Another URL, or another time, may answer otherwise. */
function passes({ code }: Failure): boolean {
  return (
    code === "registry.unreachable" || code === "registry.unavailable" || code === "registry.answer_invalid"
  );
}

function tooLarge(maxBytes: number, { what, at, section }: Asked): Failure {
  return new Failure(
    "registry.schema_invalid",
    `${what}: the answer is above the limit for ${maxBytes} bytes`,
    {
      at,
      hint: `If it is a schema that people wrote, raise ${section}.max_schema_bytes`,
    },
  );
}

function withoutCertificate(tls: NonNullable<RegistrySettings["tls"]>): NonNullable<RegistrySettings["tls"]> {
  const { cert: _cert, key: _key, serverName: _name, ...others } = tls;
  return others;
}

/** Retry-After in seconds; a date is not worth reading another clock. */
function pauseOf(headers: Headers): number {
  const text = headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0;
}
