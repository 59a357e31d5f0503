/**
 * What an S3-alike says, classed once. Two questions matter to callers: had the request surely no effect, and is it
 * worth sending again. Stores differ in their words for one thing, so the status decides where a name is not known.
 */
import type { Code } from "../../core/failure/codes.ts";
import { Failure } from "../../core/failure/failure.ts";

export type S3Kind =
  /** The object, the upload: not there. */
  | "absent"
  /** A condition did not hold. */
  | "refused"
  /** Another operation on the same key is under way. */
  | "conflict"
  /** Too much at once, or the store is out of order; passes. */
  | "busy"
  /** The answer was cut, late or not readable: nobody knows what happened. */
  | "cut"
  | "denied"
  | "skewed"
  | "misplaced"
  | "untrusted"
  | "full"
  /** The request is wrong; sending it again changes nothing. */
  | "wrong";

export interface S3Fault {
  readonly kind: S3Kind;
  /** True: the request surely had no effect and never will have. */
  readonly noEffect: boolean;
  readonly text: string;
  readonly cause: unknown;
}

const NAMES: ReadonlyMap<string, S3Kind> = new Map([
  ["NoSuchKey", "absent"],
  ["NotFound", "absent"],
  ["NoSuchUpload", "absent"],
  // Parts that the store had acknowledged: gone with an upload that somebody gives up at this moment.
  ["InvalidPart", "absent"],
  ["PreconditionFailed", "refused"],
  ["ConditionalRequestConflict", "conflict"],
  ["OperationAborted", "conflict"],
  ["SlowDown", "busy"],
  ["ServiceUnavailable", "busy"],
  ["TooManyRequests", "busy"],
  ["RequestLimitExceeded", "busy"],
  // Of a store, or of the service that keeps its keys; some say so with a 400.
  ["Throttling", "busy"],
  ["ThrottlingException", "busy"],
  ["ThrottledException", "busy"],
  ["RequestThrottled", "busy"],
  ["RequestThrottledException", "busy"],
  ["TooManyRequestsException", "busy"],
  ["InternalError", "cut"],
  ["RequestTimeout", "cut"],
  ["IncompleteBody", "cut"],
  ["TimeoutError", "cut"],
  ["AbortError", "cut"],
  ["BadDigest", "cut"],
  ["XAmzContentSHA256Mismatch", "cut"],
  ["RequestTimeTooSkewed", "skewed"],
  ["RequestExpired", "skewed"],
  ["RequestInTheFuture", "skewed"],
  ["NoSuchBucket", "misplaced"],
  ["PermanentRedirect", "misplaced"],
  ["AuthorizationHeaderMalformed", "misplaced"],
  ["IllegalLocationConstraintException", "misplaced"],
  ["CredentialsProviderError", "denied"],
  ["TokenProviderError", "denied"],
  ["ExpiredToken", "denied"],
  ["ExpiredTokenException", "denied"],
  ["TokenRefreshRequired", "denied"],
  ["InvalidToken", "denied"],
  ["QuotaExceeded", "full"],
  ["InsufficientStorage", "full"],
  ["XMinioStorageFull", "full"],
  ["XMinioAdminBucketQuotaExceeded", "full"],
  ["StorageFull", "full"],
]);

const STATUSES: ReadonlyMap<number, S3Kind> = new Map([
  [301, "misplaced"],
  [307, "misplaced"],
  [401, "denied"],
  [403, "denied"],
  [404, "absent"],
  [408, "cut"],
  [409, "conflict"],
  [412, "refused"],
  [429, "busy"],
  [503, "busy"],
  [507, "full"],
]);

/** Words of TLS libraries for a certificate that does not prove its host. */
const TLS = /CERT|SELF_SIGNED|VERIFY|ALTNAME|certificate/i;

/** Answers that prove that the request was turned away. A 5xx does not, whatever it says of itself. */
const TURNED_AWAY: ReadonlySet<S3Kind> = new Set([
  "denied",
  "skewed",
  "misplaced",
  "untrusted",
  "full",
  "wrong",
]);

export function s3Fault(e: unknown): S3Fault {
  const name = e instanceof Error ? e.name : "";
  const code = textOf(e, "code") || textOf(e, "Code");
  const status = statusOf(e);
  const kind = kindOf(e, name, code, status);
  const turnedAway = status === null ? kind !== "cut" : status >= 300 && status < 500;
  return {
    kind,
    noEffect: turnedAway && TURNED_AWAY.has(kind),
    text: textOfFault(e, name, code, status),
    cause: e,
  };
}

function kindOf(e: unknown, name: string, code: string, status: number | null): S3Kind {
  const named = NAMES.get(name) ?? NAMES.get(code);
  if (named !== undefined) return named;
  const message = e instanceof Error ? e.message : String(e);
  if (status === null || status === -1) return withoutAnswer(code, message);
  const known = STATUSES.get(status);
  if (known !== undefined) return known;
  // A success whose body says otherwise, or cannot be read, is no success.
  if (status >= 500 || status < 300) return "cut";
  return "wrong";
}

function withoutAnswer(code: string, message: string): S3Kind {
  if (TLS.test(code) || /certificate/i.test(message)) return "untrusted";
  if (/region is missing/i.test(message)) return "misplaced";
  return "cut";
}

function textOfFault(e: unknown, name: string, code: string, status: number | null): string {
  const message = e instanceof Error ? e.message : String(e);
  const words = [name === "Error" ? code : name, status === null || status < 0 ? "" : `HTTP ${status}`];
  const known = words.filter((w) => w !== "").join(", ");
  const said = message === name || message === "UnknownError" || message === "" ? "" : message.slice(0, 300);
  if (said === "") return known;
  return known === "" ? said : `${said} (${known})`;
}

function statusOf(e: unknown): number | null {
  if (typeof e !== "object" || e === null || !("$metadata" in e)) return null;
  const status = (e.$metadata as { readonly httpStatusCode?: unknown } | undefined)?.httpStatusCode;
  return typeof status === "number" ? status : null;
}

function textOf(e: unknown, key: string): string {
  if (typeof e !== "object" || e === null || !(key in e)) return "";
  const value: unknown = Reflect.get(e, key);
  return typeof value === "string" ? value : "";
}

interface Meaning {
  readonly code: Code;
  readonly hint: string;
}

const PASSES: Meaning = {
  code: "store.unavailable",
  hint: "It is tried again; nothing is lost meanwhile",
};

const MEANINGS: Readonly<Record<S3Kind, Meaning>> = {
  absent: { code: "store.absent", hint: "Was it removed by hand or by a lifecycle rule of the bucket?" },
  refused: { code: "store.foreign", hint: "Something stands there that twg did not write" },
  conflict: PASSES,
  busy: PASSES,
  cut: PASSES,
  denied: {
    code: "store.denied",
    hint: "Look at the keys and at what they may do: docs/object-stores.md lists the rights that twg needs",
  },
  skewed: { code: "store.denied", hint: "The clock of this machine is wrong by minutes: set it" },
  misplaced: {
    code: "store.misplaced",
    hint: "Look at the bucket's name, at `region`, `endpoint` and `style`; twg makes no buckets",
  },
  untrusted: {
    code: "store.untrusted",
    hint: "Name the authority that signed the certificate in `ca`, and the host that stands in it in `endpoint`",
  },
  full: {
    code: "store.full",
    hint: "Free space or raise the quota: nothing is lost, writing goes on by itself",
  },
  wrong: { code: "store.refused", hint: "The store does not take the request; its message says why" },
};

export function s3Failure(e: unknown, doing: string, at: string): Failure {
  if (e instanceof Failure) return e;
  const fault = s3Fault(e);
  const { code, hint } = MEANINGS[fault.kind];
  return new Failure(code, `cannot ${doing}: ${fault.text}`, { at, hint, cause: e });
}
