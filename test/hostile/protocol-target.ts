/**
 * Fuzz target: the protocol decoders on damaged messages. A case takes a whole message of any API and version, damages
 * it by the seed, and decodes it: the only thing that may come out is a body or a coded Failure of the bytes.
 */
import {
  APIS,
  type ApiName,
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
} from "../../src/adapters/kafka/wire/protocol.ts";
import { Failure } from "../../src/core/failure/failure.ts";
import { sampleBody, VARIANTS } from "../adapters/kafka/wire/bodies.ts";

interface Sample {
  readonly api: ApiName;
  readonly kind: "request" | "response";
  readonly version: number;
  /** As the decoder takes it: without the size. */
  readonly bytes: Uint8Array;
}

const ALLOWED = new Set(["bytes.short", "bytes.limit", "bytes.invalid"]);
/** Values that lengths and counts are most likely to break on. */
const EDGES = [0, 1, 0x7f, 0x80, 0xff] as const;

let samples: readonly Sample[] | null = null;

function load(): readonly Sample[] {
  samples ??= (Object.keys(APIS) as ApiName[]).flatMap((api) => {
    const [min, max] = APIS[api].request.versions;
    const versions = Array.from({ length: max - min + 1 }, (_, i) => min + i);
    return versions.flatMap((version) =>
      VARIANTS.flatMap((variant): Sample[] => {
        const request = sampleBody(APIS[api].request, version, variant) as never;
        const response = sampleBody(APIS[api].response, version, variant) as never;
        return [
          { api, version, kind: "request", bytes: encodeRequest(api, version, 1, "t", request).slice(4) },
          { api, version, kind: "response", bytes: encodeResponse(api, version, 1, response).slice(4) },
        ];
      }),
    );
  });
  return samples;
}

/** A generator of its own, so that one case number is one input for ever. */
function draws(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x9e3779b9) | 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) % below;
  };
}

function damage(bytes: Uint8Array, draw: (below: number) => number): Uint8Array {
  const out = bytes.slice(0, draw(4) === 0 ? draw(bytes.length + 1) : bytes.length);
  for (let n = draw(6); n > 0 && out.length > 0; n--) {
    const at = draw(out.length);
    out[at] = draw(3) === 0 ? draw(256) : EDGES[draw(EDGES.length)]!;
  }
  return out;
}

/** Runs case `n`. Throws what must not happen; returns whether the damaged message was refused. */
export function fuzzProtocol(n: number): boolean {
  const all = load();
  const draw = draws(n);
  const sample = all[draw(all.length)]!;
  const bytes = damage(sample.bytes, draw);
  try {
    if (sample.kind === "response") decodeResponse(sample.api, sample.version, bytes);
    else decodeRequest(bytes);
    return false;
  } catch (e) {
    if (e instanceof Failure && ALLOWED.has(e.code)) return true;
    throw e;
  }
}
