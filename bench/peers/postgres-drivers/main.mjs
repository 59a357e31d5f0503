/**
 * What each driver makes of an error in COPY (docs/decisions/0011-postgres-client.md). Needs a server:
 *
 *   cd bench/peers/postgres-drivers && bun install && ../../../scripts/with-servers.sh --postgres bun main.mjs
 */
import postgres from "postgres";

const { host, port, user, password } = JSON.parse(process.env.TWG_REAL_POSTGRES ?? "{}");
const place = { host, port, user, password, database: "twg" };
const WAIT_MS = 5000;
const encoder = new TextEncoder();

/** Text rows of a table of one integer below 10. */
const BAD_TYPE = "1\n2\nxx\n";
const BAD_CHECK = "1\n50\n";

async function outcome(work) {
  const late = new Promise((resolve) => setTimeout(() => resolve(`no answer after ${WAIT_MS} ms`), WAIT_MS));
  const told = work().then(
    () => "no error",
    (e) => `error ${e.errno ?? e.code}`,
  );
  return Promise.race([told, late]);
}

const bun = new Bun.SQL({ ...place, adapter: "postgres", max: 2 });
await bun.unsafe("drop table if exists drivers; create table drivers(a int check (a < 10))");
const bunCopy = (text) => () =>
  bun.begin(async (tx) => {
    const writer = tx`copy drivers from stdin`.writable().getWriter();
    await writer.write(encoder.encode(text));
    await writer.close();
  });

const npm = postgres({ ...place, max: 2, onnotice() {} });
const npmCopy = (text, inTransaction) => () => {
  const copy = async (sql) => {
    const writable = await sql`copy drivers from stdin`.writable();
    await new Promise((resolve, reject) => {
      writable.on("error", reject);
      writable.on("finish", resolve);
      writable.end(text);
    });
  };
  return inTransaction ? npm.begin(copy) : copy(npm);
};

for (const [what, text] of [
  ["a value of another type", BAD_TYPE],
  ["a check constraint", BAD_CHECK],
]) {
  console.log(`${what}: Bun.sql ${await outcome(bunCopy(text))}`);
  console.log(`${what}: postgres ${await outcome(npmCopy(text, false))}`);
  console.log(`${what}: postgres in a transaction ${await outcome(npmCopy(text, true))}`);
}
process.exit(0);
