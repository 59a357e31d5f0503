/** Rights of the file system bind everybody but root; whoever tests them must not be root meanwhile. */
const NOBODY = 65_534;

/** Runs `work` as a user that owns nothing. For everybody but root it changes nothing. */
export async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  const root = process.geteuid?.() === 0;
  if (root) process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    if (root) process.seteuid?.(0);
  }
}
