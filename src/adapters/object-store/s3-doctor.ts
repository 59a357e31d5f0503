/** A bucket's part of `twg doctor`: reached and allowed, clocks, and what two-phase files rest on. Leaves nothing. */
import { asFailure } from "../../core/failure/failure.ts";
import { type Checkup, clockSkew, failedBy, ok, skipped } from "../../core/ports/doctor.ts";
import type { VersionedStore } from "../../core/ports/versioned-store.ts";
import { S3Objects } from "./s3-objects.ts";
import { probeUploads } from "./s3-probe.ts";
import type { S3Requests } from "./s3-requests.ts";
import { encryption } from "./s3-terms.ts";
import { S3Uploads } from "./s3-uploads.ts";

/** A store tells the time in whole seconds. */
const DATE_STEP_MS = 1000;

export interface S3CheckupParts {
  readonly requests: S3Requests;
  /** Folder of the sink's own objects, and a name in it that nobody else has. */
  readonly own: string;
  readonly instance: string;
  readonly versions: VersionedStore;
}

export function s3Checkup({ requests, own, instance, versions }: S3CheckupParts): Checkup {
  const at = requests.place();
  return {
    name: "s3",
    at,
    async run({ report, signal }) {
      const objects = new S3Objects(requests);
      const key = `${own}/doctor/${instance}`;
      const before = requests.clock.now();
      let date: number | null = null;
      try {
        await requests.repeated(
          "write",
          key,
          async ({ sdk, client }, abortSignal) => {
            const command = new sdk.PutObjectCommand({
              Bucket: requests.bucket,
              Key: requests.keyOf(key),
              Body: new TextEncoder().encode("twg doctor\n"),
              ...encryption(requests.connection),
            });
            // The SDK hides the answer's headers from its caller.
            command.middlewareStack.add(
              (next) => async (args) => {
                const result = await next(args);
                date = dateOf(result.response);
                return result;
              },
              { step: "deserialize", priority: "low" },
            );
            return client.send(command, { abortSignal });
          },
          { life: signal },
        );
        report(ok("s3.write", at, `objects may be written below ${own}/`));
      } catch (e) {
        report(failedBy("s3.write", at, asFailure(e)));
        return;
      }
      if (date === null) report(skipped("s3.clock", at, "the store does not tell the time"));
      else report(clockSkew("s3.clock", at, date, before, requests.clock.now(), DATE_STEP_MS));
      const attempt = async (check: string, seen: string, work: () => Promise<unknown>) => {
        try {
          await work();
          report(ok(check, at, seen));
        } catch (e) {
          report(failedBy(check, at, asFailure(e)));
        }
      };
      await attempt("s3.remove", "objects may be read and removed", async () => {
        await objects.head(key);
        await objects.remove(key);
      });
      await attempt("s3.conditions", "conditional writes hold", () => versions.prepare());
      await attempt("s3.uploads", "open uploads hold and are invisible", () =>
        probeUploads(new S3Uploads(requests), objects, `${own}/probe/${instance}`, at),
      );
    },
  };
}

/** ms since 1970 of the Date header, null where there is none. */
function dateOf(response: unknown): number | null {
  if (typeof response !== "object" || response === null || !("headers" in response)) return null;
  const headers = response.headers as Readonly<Record<string, string | undefined>>;
  const ms = Date.parse(headers["date"] ?? headers["Date"] ?? "");
  return Number.isNaN(ms) ? null : ms;
}
