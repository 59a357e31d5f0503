import type { BenchOptions, Figure } from "./figure.ts";
import type { Topic } from "./topics.ts";
export async function* intoPostgres(_o: BenchOptions, _topic: Topic): AsyncGenerator<Figure> {}
