/**
 * What helpers of tests clean up. Bun runs hooks of an imported file for the first test file alone that imports it, and
 * those of a preloaded file (bunfig.toml) for all: so the hooks are here, and helpers say what is to be done.
 */
import { afterAll, afterEach } from "bun:test";

type Work = () => Promise<void> | void;
const behindTests: Work[] = [];
const atEnd: Work[] = [];

/** Is done after every test of every file from now on. */
export const tidyAfterTests = (work: Work): void => void behindTests.push(work);

/** Is done after the last file. */
export const tidyAtEnd = (work: Work): void => void atEnd.push(work);

afterEach(async () => {
  for (const work of behindTests) await work();
});

afterAll(async () => {
  for (const work of atEnd) await work();
}, 120_000);
