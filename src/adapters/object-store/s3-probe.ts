/**
 * What two-phase objects rest on, tried out with a few bytes before anything is read: an open upload shows no object,
 * one that was given up can never become one, and a completed one carries the metadata that it was begun with.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { S3Objects } from "./s3-objects.ts";
import { abortUpload, type S3Uploads, TOKEN } from "./s3-uploads.ts";

/** An answer that was lost proves nothing: so often is it asked again. */
const COMPLETIONS = 8;
const CONTENT = new TextEncoder().encode("twg probe\n");

export async function probeUploads(
  uploads: S3Uploads,
  objects: S3Objects,
  name: string,
  place: string,
): Promise<void> {
  const expect = (holds: boolean, what: string) => {
    if (holds) return;
    throw new Failure("store.unsuitable", `the store ${what}, so a file could be lost or doubled there`, {
      at: place,
      hint: "docs/object-stores.md lists the stores that were tried",
    });
  };
  const keptKey = `${name}-kept`;
  let unsure = false;
  let unfinished = true;
  const begin = async (key: string) => {
    const upload = await uploads.create(key, key, () => {
      unsure = true;
    });
    return { key, upload, parts: [await uploads.part(key, upload, 1, CONTENT)] };
  };
  try {
    const given = await begin(`${name}-given-up`);
    const kept = await begin(keptKey);
    expect((await objects.head(kept.key)) === null, "shows an object before its upload is completed");
    const listed = await uploads.parts(kept.key, kept.upload);
    expect(
      listed?.length === 1 && listed[0]?.bytes === CONTENT.length,
      "does not list the parts of an upload",
    );

    await abortUpload(uploads, given.key, given.upload);
    expect((await uploads.parts(given.key, given.upload)) === null, "keeps an upload that was given up");
    await uploads.complete(given.key, given.upload, given.parts).catch(() => {});
    expect((await objects.head(given.key)) === null, "completes an upload that was given up");

    let found = null;
    for (let tries = 0; tries < COMPLETIONS && found === null; tries++) {
      await uploads.complete(kept.key, kept.upload, kept.parts);
      found = await objects.head(kept.key);
    }
    expect(found !== null, "does not show an object whose upload was completed");
    expect(found?.bytes === CONTENT.length, "shows another size than was uploaded");
    expect(found?.metadata[TOKEN] === kept.key, "loses the metadata of an upload");
    await uploads.complete(kept.key, kept.upload, kept.parts).catch(() => {});
    expect(
      (await objects.head(kept.key))?.metadata[TOKEN] === kept.key,
      "loses an object that is completed twice",
    );
    unfinished = unsure;
  } finally {
    // What a lost answer or a failure left open is known by nobody but the store.
    if (unfinished) await abandon(uploads, `${name}-`).catch(() => {});
    await objects.remove(keptKey).catch(() => {});
  }
}

async function abandon(uploads: S3Uploads, prefix: string): Promise<void> {
  for (const { key, upload } of await uploads.under(prefix)) await abortUpload(uploads, key, upload);
}
