/** How a CSV file spells its rows. All marks are single bytes below 0x80, so they never fall inside of a UTF-8 character. */
export interface CsvDialect {
  readonly delimiter: number;
  /** Null: nothing is quoted, quotes are text. */
  readonly quote: number | null;
  /** Makes the next byte text inside of quotes; the quote itself where quotes are doubled. */
  readonly escape: number | null;
  /** 10: lines end with LF or CR LF. 13: with CR alone. */
  readonly newline: 10 | 13;
  /** Unquoted fields of exactly these texts are null. */
  readonly nulls: readonly string[];
}

export const COMMA = 44;
export const QUOTE = 34;
export const LF = 10;
export const CR = 13;

export const RFC_4180: CsvDialect = {
  delimiter: COMMA,
  quote: QUOTE,
  escape: QUOTE,
  newline: LF,
  nulls: [""],
};
