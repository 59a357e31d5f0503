/** Runs checkups side by side, each within the time that all have. Whatever hangs becomes a finding. */
import { asFailure } from "../core/failure/failure.ts";
import { type Checkup, type Finding, failedBy } from "../core/ports/doctor.ts";
import type { Clock } from "../core/time/clock.ts";

/** Findings in the order of `checkups`. Never throws and never takes longer than `timeoutMs`. */
export async function runCheckups(
  checkups: readonly Checkup[],
  clock: Clock,
  timeoutMs: number,
): Promise<Finding[]> {
  const findings = await Promise.all(checkups.map((c) => runOne(c, clock, timeoutMs)));
  return findings.flat();
}

async function runOne(checkup: Checkup, clock: Clock, timeoutMs: number): Promise<Finding[]> {
  const findings: Finding[] = [];
  const life = new AbortController();
  let over = false;
  // What comes too late is not reported: the table is printed by then.
  const report = (finding: Finding) => {
    if (!over) findings.push(finding);
  };
  const name = `${checkup.name}.finished`;
  await new Promise<void>((resolve) => {
    const end = (last: Finding | null) => {
      if (last !== null) report(last);
      over = true;
      timer.cancel();
      resolve();
    };
    const timer = clock.after(timeoutMs, () => {
      end({
        check: name,
        at: checkup.at,
        verdict: "failed",
        seen: `did not come to an end within ${timeoutMs} ms`,
        advice: "Something neither answers nor refuses: often a firewall. Raise --timeout if it is only slow",
        code: null,
      });
      life.abort();
    });
    checkup.run({ clock, signal: life.signal, report }).then(
      () => end(null),
      (e) => end(failedBy(name, checkup.at, asFailure(e))),
    );
  });
  return findings;
}
