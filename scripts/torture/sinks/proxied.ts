/** What proxies before a server do to it. */
import type { TcpProxy, TcpTrouble } from "../tcp-proxy.ts";
import { calls, type Trouble } from "./place.ts";

const TROUBLES: Readonly<Record<string, TcpTrouble>> = {
  hang: { t: "hang" },
  slow: { t: "slow", ms: 150 },
  cut: { t: "cut" },
  flaky: { t: "flaky", share: 0.05 },
};

export function proxyTroubles(proxies: readonly TcpProxy[]): Record<string, Trouble> {
  const all = (trouble: TcpTrouble) => {
    for (const p of proxies) p.trouble = trouble;
  };
  return Object.fromEntries(
    Object.entries(TROUBLES).map(([name, trouble]) => [
      name,
      calls(
        () => all(trouble),
        () => all({ t: "pass" }),
      ),
    ]),
  );
}
