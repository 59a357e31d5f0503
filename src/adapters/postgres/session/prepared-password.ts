/**
 * SASLprep of a password (RFC 4013) as far as servers and clients of PostgreSQL agree on it: other spaces become
 * spaces, invisible marks go, the rest is brought to normal form KC. A password that the profile prohibits is used as
 * it is, which is what PostgreSQL's own code does on both sides.
 */
const SPACES = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g;
const NOTHING = /\u00ad|\u034f|\u1806|[\u180b-\u180d]|\u200c|\u200d|\u2060|\ufeff|[\ufe00-\ufe0f]/g;
const PROHIBITED = /[\p{Cc}\p{Cs}\p{Co}\u2028\u2029\ufff9-\uffff]/u;

export function preparedPassword(password: string): string {
  const prepared = password.replace(SPACES, " ").replace(NOTHING, "").normalize("NFKC");
  return prepared === "" || PROHIBITED.test(prepared) ? password : prepared;
}
