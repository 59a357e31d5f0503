/**
 * The schemas that a schema refers to, as deep as they go. The registry is not trusted to keep circles out, and a diamond
 * of references, small as it is, must not become a tree that fills memory: nodes are counted as whoever walks them will.
 */
import type { SchemaReference } from "../../core/schema/resolver.ts";
import type { NamedReference } from "./schema-answer.ts";

export const MAX_DEPTH = 32;
export const MAX_NODES = 1000;

export interface Loaded {
  readonly text: string;
  readonly references: readonly NamedReference[];
}

export interface ReferenceLimits {
  readonly maxBytes: number;
  /** One version of a subject. */
  load(reference: NamedReference): Promise<Loaded>;
  /** The failure to throw for what cannot be used. */
  refuse(why: string): Error;
}

export async function resolveReferences(
  root: Loaded,
  limits: ReferenceLimits,
): Promise<readonly SchemaReference[]> {
  let nodes = 0;
  let chars = root.text.length;
  const one = async (reference: NamedReference, above: readonly string[]): Promise<SchemaReference> => {
    const key = `${reference.subject} version ${reference.version}`;
    if (above.includes(key))
      throw limits.refuse(`references go in a circle: ${[...above, key].join(" -> ")}`);
    if (above.length >= MAX_DEPTH) throw limits.refuse(`references go deeper than ${MAX_DEPTH}`);
    if (++nodes > MAX_NODES)
      throw limits.refuse(`more than ${MAX_NODES} references, those of references included`);
    const loaded = await limits.load(reference);
    chars += loaded.text.length;
    if (chars > limits.maxBytes)
      throw limits.refuse(`with its references it is above the limit of ${limits.maxBytes} bytes`);
    return { name: reference.name, text: loaded.text, references: await all(loaded, [...above, key]) };
  };
  // One after the other: what was loaded serves its siblings, and limits hold before the next question.
  const all = async (loaded: Loaded, above: readonly string[]): Promise<SchemaReference[]> => {
    const found: SchemaReference[] = [];
    for (const reference of loaded.references) found.push(await one(reference, above));
    return found;
  };
  if (chars > limits.maxBytes) throw limits.refuse(`it is above the limit of ${limits.maxBytes} bytes`);
  return await all(root, []);
}
