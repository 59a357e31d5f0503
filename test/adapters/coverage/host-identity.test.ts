/** Whether another process still runs, by real processes of this machine. A wrong "dead" would fence a living owner. */
import { describe, expect, test } from "bun:test";
import { linuxIdentity } from "../../../src/adapters/coverage/host-identity.ts";

const me = linuxIdentity();

async function child(): Promise<{ readonly pid: number; end(): Promise<void> }> {
  const process_ = Bun.spawn(["sleep", "60"]);
  return {
    pid: process_.pid,
    end: async () => {
      process_.kill("SIGKILL");
      await process_.exited;
    },
  };
}

describe("on Linux", () => {
  test("we know ourselves well enough to be known again", () => {
    const { self } = me;
    expect(self.pid).toBe(process.pid);
    expect([self.hostname, self.bootId, self.pidNamespace, self.startTime].includes("")).toBe(false);
    expect(self.startTime).toMatch(/^\d+$/);
    expect(me.isAlive(self)).toBe("alive");
  });

  test("a process that runs is alive, one that was killed is dead, also by the identity it had", async () => {
    const c = await child();
    const other = linuxIdentity(c.pid).self;
    expect(me.isAlive(other)).toBe("alive");
    await c.end();
    expect(me.isAlive(other)).toBe("dead");
  });

  test("a stopped process is alive: it may go on at any time", async () => {
    const c = await child();
    const other = linuxIdentity(c.pid).self;
    process.kill(c.pid, "SIGSTOP");
    expect(me.isAlive(other)).toBe("alive");
    await c.end();
  });

  test("a pid that was given to a later process is not the owner", () => {
    expect(me.isAlive({ ...me.self, startTime: "1" })).toBe("dead");
  });

  test("a command with spaces and parentheses in its name does not shift the start time", async () => {
    const stat = await Bun.file(`/proc/${process.pid}/stat`).text();
    // proc(5): field 22, counted behind the last parenthesis as field 3 is the first there.
    expect(me.self.startTime).toBe(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "");
  });

  test("another boot, another container or a process of which too little is known may live anywhere", () => {
    const strange = [
      { bootId: "another" },
      { pidNamespace: "pid:[1]" },
      { bootId: "" },
      { pidNamespace: "" },
      { startTime: "" },
    ];
    for (const over of strange) expect(me.isAlive({ ...me.self, ...over })).toBe("unknown");
  });

  test("a pid that is none is dead", () => {
    expect(me.isAlive({ ...me.self, pid: 2 ** 30 })).toBe("dead");
  });
});
