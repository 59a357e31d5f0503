/**
 * AWS_MSK_IAM: the client's one message is a JSON object with the parts of a presigned request (Signature Version 4,
 * service `kafka-cluster`), the server's answer one with the version and an id for support.
 */
import { Failure } from "../failure/failure.ts";
import type { SaslMachine, SaslStep } from "./mechanism.ts";

/** The only version there is. */
export const MSK_IAM_VERSION = "2020_10_22";

/** Query parameters of the presigned request by their names, which the payload holds in small letters. */
export interface MskIamRequest {
  readonly host: string;
  readonly userAgent: string;
  readonly query: Readonly<Record<string, string>>;
}

export function mskIamPayload({ host, userAgent, query }: MskIamRequest): string {
  const small = Object.entries(query).map(([name, value]) => [name.toLowerCase(), value] as const);
  return JSON.stringify({
    version: MSK_IAM_VERSION,
    host,
    "user-agent": userAgent,
    ...Object.fromEntries(small),
  });
}

export function awsMskIam(payload: string): SaslMachine {
  let sent = false;
  return {
    mechanism: "AWS_MSK_IAM",
    step(server: Uint8Array | null): SaslStep {
      if (!sent) {
        sent = true;
        return { kind: "send", message: new TextEncoder().encode(payload) };
      }
      checkAnswer(server ?? new Uint8Array(0));
      return { kind: "done" };
    },
  };
}

function checkAnswer(bytes: Uint8Array): void {
  let version: unknown;
  try {
    version = (JSON.parse(new TextDecoder().decode(bytes)) as { version?: unknown } | null)?.version;
  } catch {
    version = undefined;
  }
  if (version === MSK_IAM_VERSION) return;
  throw new Failure("sasl.server_invalid", "AWS_MSK_IAM: the server's answer is not one of that version", {
    hint: `It is to be JSON with the version ${MSK_IAM_VERSION}: is this an MSK cluster with IAM?`,
  });
}
