/**
 * Free ports on 127.0.0.1, outside the range from which the kernel takes ports for outgoing connections: a broker
 * that is killed and comes back must find its own port still free. TWG_PORTS="first-last" narrows the choice.
 */
import { createServer } from "node:net";

export const PORTS = "20000-31999";
/** Several servers may be started at once, and bind later. */
const given = new Set<number>();

export async function freePorts(count: number): Promise<number[]> {
  const [first, last] = (process.env["TWG_PORTS"] ?? PORTS).split("-").map(Number) as [number, number];
  const size = last - first + 1;
  const start = Math.floor(Math.random() * size);
  const found: number[] = [];
  for (let i = 0; i < size && found.length < count; i++) {
    const port = first + ((start + i) % size);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) found.push(port);
    else given.delete(port);
  }
  if (found.length < count) throw new Error(`fewer than ${count} free ports between ${first} and ${last}`);
  return found;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
