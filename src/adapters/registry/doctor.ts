/**
 * The part of `twg doctor` that looks at a schema registry: each URL is asked, by the login of the configuration, and each
 * subject looked for whose schema a table will have. Nothing is registered.
 */
import { asFailure, type Failure } from "../../core/failure/failure.ts";
import { type Checkup, type DoctorContext, failedBy, ok, warning } from "../../core/ports/doctor.ts";
import { type RegistryParts, RegistryRequests } from "./requests.ts";
import { readSchema } from "./schema-answer.ts";
import type { RegistrySettings } from "./settings.ts";

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** `subjects`: whose latest version is needed at the start; none where files have the schemas. */
export function registryCheckup(
  settings: RegistrySettings,
  subjects: readonly string[],
  parts: RegistryParts,
): Checkup {
  const at = settings.urls.join(", ");
  return {
    name: "registry",
    at,
    async run(context) {
      const requests = new RegistryRequests({ ...settings, attempts: 1 }, parts);
      const close = () => requests.close();
      context.signal.addEventListener("abort", close, { once: true });
      try {
        await Promise.all(settings.urls.map((url) => reach(requests, url, subjects[0] ?? null, context)));
        for (const subject of subjects) await look(requests, subject, context);
      } finally {
        context.signal.removeEventListener("abort", close);
        close();
      }
    },
  };
}

/** What a registry answers that knows no subject yet. The first is not in every one, the second may be forbidden, the last may be long. */
const EVERYWHERE = ["/schemas/types", "/config", "/subjects"];

/** Null: one of the paths is answered as by a registry. Else why the first is not. */
async function unreached(
  requests: RegistryRequests,
  url: string,
  paths: readonly string[],
): Promise<Failure | null> {
  let first: Failure | null = null;
  for (const path of paths) {
    const question = { method: "GET", path, body: null, what: "the registry" } as const;
    const failure = await failureOf(requests.askAt(url, question));
    if (failure === null || failure.code === "registry.unknown_subject") return null;
    first ??= failure;
    // A server that is down or wants another login is so on every path.
    if (first.code !== "registry.answer_invalid") break;
  }
  return first;
}

/** A subject that is there costs less than a list of all, and its absence is an answer as well. */
async function reach(
  requests: RegistryRequests,
  url: string,
  subject: string | null,
  { report }: DoctorContext,
): Promise<void> {
  const { login } = requests.settings;
  const failure = await unreached(requests, url, subject === null ? EVERYWHERE : [latest(subject)]);
  if (failure !== null) {
    report(failedBy("registry.url", url, failure));
    return;
  }
  const { protocol, hostname } = new URL(url);
  const plain = protocol === "http:" && !LOOPBACK.test(hostname) && login.by !== "nothing";
  const as = login.by === "nothing" ? "without a login" : `logged in by ${login.by}`;
  if (!plain) report(ok("registry.url", url, `answers, ${as}`));
  else
    report(
      warning(
        "registry.url",
        url,
        `answers, ${as} in plain text`,
        "Use https://: whoever is in between reads the login",
      ),
    );
}

async function look(requests: RegistryRequests, subject: string, { report }: DoctorContext): Promise<void> {
  const what = `the latest version of ${subject}`;
  try {
    const answer = await requests.ask({ method: "GET", path: latest(subject), body: null, what });
    const at = requests.settings.urls[0] ?? "";
    const { format, version, id } = readSchema(answer, { what, at, section: requests.settings.section });
    report(ok("registry.subject", subject, `${format}, version ${version}, id ${id}`));
  } catch (e) {
    const failure = asFailure(e);
    if (failure.code !== "registry.unknown_subject") report(failedBy("registry.subject", subject, failure));
    else
      report(
        warning(
          "registry.subject",
          subject,
          "the registry has no such subject",
          "Fine if nothing was produced yet; else look at decode.subject_strategy and decode.subject",
        ),
      );
  }
}

function latest(subject: string): string {
  return `/subjects/${encodeURIComponent(subject)}/versions/latest`;
}

async function failureOf(asked: Promise<unknown>): Promise<Failure | null> {
  try {
    await asked;
    return null;
  } catch (e) {
    return asFailure(e);
  }
}
