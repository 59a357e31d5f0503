/**
 * The message of AWS_MSK_IAM: a GET of `https://<broker>/?Action=kafka-cluster:Connect`, presigned by Signature
 * Version 4. Signer and credential chain are the SDK's, loaded by the first login, so that nobody else pays for them.
 */
import { createHash, createHmac } from "node:crypto";
import { asFailure, Failure } from "../../../core/failure/failure.ts";
import { mskIamPayload } from "../../../core/sasl/aws-msk-iam.ts";
import type { Clock } from "../../../core/time/clock.ts";

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface AwsIdentity {
  /** Null: from the broker's name, else from the environment. */
  readonly region: string | null;
  /** Null: the usual chain, which finds and renews them by itself. */
  readonly keys: AwsKeys | null;
  readonly profile: string | null;
}

type Credentials = () => Promise<{
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}>;

const SERVICE = "kafka-cluster";
/** The broker checks it at once: long enough for clocks that differ. */
const VALID_SECONDS = 300;
/** Instance metadata that never answers must not hold a login up for ever. */
const CHAIN_TIMEOUT_MS = 10_000;
const MSK_HOST = /\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$/;

/** One for all connections, since the chain remembers what it found until that ends. */
export class MskIamSigner {
  readonly #identity: AwsIdentity;
  readonly #clock: Clock;
  readonly #environment: Readonly<Record<string, string | undefined>>;
  #chain: Credentials | null = null;

  constructor(
    identity: AwsIdentity,
    clock: Clock,
    environment: Readonly<Record<string, string | undefined>> = process.env,
  ) {
    this.#identity = identity;
    this.#clock = clock;
    this.#environment = environment;
  }

  /** The payload for one login at `host`. Rejects with aws.credentials_missing. */
  async payload(host: string): Promise<string> {
    const region = this.#regionOf(host);
    const credentials = await this.#credentials(host);
    const { SignatureV4 } = await import("@smithy/signature-v4");
    const signer = new SignatureV4({
      service: SERVICE,
      region,
      credentials,
      sha256: Sha256,
      applyChecksum: false,
    });
    const request = {
      method: "GET",
      protocol: "https:",
      hostname: host,
      path: "/",
      headers: { host },
      query: { Action: "kafka-cluster:Connect" },
    };
    const presigned = await signer.presign(request, {
      expiresIn: VALID_SECONDS,
      signingDate: new Date(this.#clock.now()),
    });
    const query = presigned.query as Record<string, string>;
    return mskIamPayload({ host, userAgent: "twg", query });
  }

  #regionOf(host: string): string {
    const env = this.#environment;
    const region =
      this.#identity.region ?? MSK_HOST.exec(host)?.[1] ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"];
    if (region !== undefined && region !== "") return region;
    throw new Failure("aws.credentials_missing", `the region of ${host} is not known`, {
      at: host,
      hint: "Set source.sasl.aws.region: the broker's name does not hold it, and AWS_REGION is not set",
    });
  }

  async #credentials(host: string): Promise<Awaited<ReturnType<Credentials>>> {
    const { keys } = this.#identity;
    if (keys !== null) {
      const { accessKeyId, secretAccessKey, sessionToken } = keys;
      return { accessKeyId, secretAccessKey, ...(sessionToken === null ? {} : { sessionToken }) };
    }
    try {
      return await this.#withinTime(await this.#openChain());
    } catch (e) {
      const f = asFailure(e);
      if (f.code === "aws.credentials_missing") throw f;
      throw new Failure("aws.credentials_missing", `no AWS credentials: ${f.message.slice(0, 300)}`, {
        at: host,
        cause: e,
        hint: "Set source.sasl.aws keys or profile, or give this machine or container a role",
      });
    }
  }

  async #openChain(): Promise<Credentials> {
    if (this.#chain !== null) return this.#chain;
    const { defaultProvider } = await import("@aws-sdk/credential-provider-node");
    const { profile } = this.#identity;
    this.#chain ??= defaultProvider(profile === null ? {} : { profile });
    return this.#chain;
  }

  #withinTime(chain: Credentials): ReturnType<Credentials> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(CHAIN_TIMEOUT_MS, () =>
        reject(
          new Failure("aws.credentials_missing", `no AWS credentials within ${CHAIN_TIMEOUT_MS} ms`, {
            retry: true,
            hint: "The source of credentials does not answer: instance metadata, container endpoint or STS",
          }),
        ),
      );
      chain()
        .then(resolve, reject)
        .finally(() => timer.cancel());
    });
  }
}

/** SHA-256 and HMAC in the form that the SDK's signer takes. */
class Sha256 {
  readonly #hash: { update(data: Uint8Array): unknown; digest(): Buffer };

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    if (secret === undefined) this.#hash = createHash("sha256");
    else this.#hash = createHmac("sha256", typeof secret === "string" ? secret : bytesOf(secret));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(typeof data === "string" ? Buffer.from(data) : bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return new Uint8Array(this.#hash.digest());
  }
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
