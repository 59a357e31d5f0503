/** Colour, in one place. Without it the same text comes out bare. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export type Style = keyof typeof CODES;

export function styled(text: string, style: Style, colour: boolean): string {
  return colour ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
}

/** Text of unknown origin on one line: control characters, which could steer the terminal, as escapes. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    if (c === "\n") return "\\n";
    if (c === "\t") return "\\t";
    return c === "\r" ? "\\r" : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
