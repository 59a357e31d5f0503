/**
 * Bytes in flight, accounted by owner (a lane), bounded by configuration and never by lag.
 *
 * Half of the budget is split into reserves, one per owner, which nobody else can use; the other half goes to
 * whoever asks. So a lane that is stuck cannot starve the rest, and a hot lane still gets most of the budget.
 *
 * Bytes are taken after they were read from a socket, so `take` never refuses: a broker may send one batch that is
 * larger than what was asked for. The overshoot is at most one such item per owner, because an owner that holds
 * anything gets room only out of what is really free.
 */
import { Failure } from "../failure/failure.ts";

export type Owner = number | string;

export interface BudgetOptions {
  /** All owners together, bytes. */
  readonly maxBytes: number;
  readonly owners: readonly Owner[];
  /** Less room than this counts as none: it is not worth a fetch. Default: an eighth of a reserve, at most 64 KiB. */
  readonly grainBytes?: number;
  /** Told when an owner goes from some room to none (`full`) and back. */
  readonly onChange?: (owner: Owner, full: boolean) => void;
}

interface Account {
  readonly owner: Owner;
  used: number;
  full: boolean;
}

export interface OwnerBytes {
  readonly owner: Owner;
  readonly bytes: number;
}

const DEFAULT_GRAIN_BYTES = 64 * 1024;

export class Budget {
  readonly maxBytes: number;
  readonly #reserve: number;
  readonly #grain: number;
  readonly #accounts = new Map<Owner, Account>();
  readonly #onChange: (owner: Owner, full: boolean) => void;
  #waiting: { readonly account: Account; readonly wake: () => void }[] = [];
  #used = 0;

  constructor(options: BudgetOptions) {
    if (!Number.isSafeInteger(options.maxBytes) || options.maxBytes < 1 || options.owners.length === 0) {
      throw new Failure("internal.bug", `a budget needs a size and owners, got ${options.maxBytes} bytes`);
    }
    this.maxBytes = options.maxBytes;
    this.#reserve = Math.floor(options.maxBytes / 2 / options.owners.length);
    this.#grain = Math.max(1, options.grainBytes ?? Math.min(DEFAULT_GRAIN_BYTES, this.#reserve >> 3));
    this.#onChange = options.onChange ?? (() => {});
    for (const owner of options.owners) this.#accounts.set(owner, { owner, used: 0, full: false });
  }

  get used(): number {
    return this.#used;
  }

  usedBy(owner: Owner): number {
    return this.#account(owner).used;
  }

  owners(): readonly OwnerBytes[] {
    return [...this.#accounts.values()].map((a) => ({ owner: a.owner, bytes: a.used }));
  }

  /**
   * Bytes that the owner may ask for now; 0 = do not fetch. An owner that holds nothing always gets at least 1,
   * which a broker answers with one batch of any size: otherwise an item above the budget could never pass.
   */
  room(owner: Owner): number {
    return this.#room(this.#account(owner));
  }

  /** True if an item of this size may be taken without breaking the bound, or because the owner is empty. */
  admits(owner: Owner, bytes: number): boolean {
    const account = this.#account(owner);
    return account.used === 0 || bytes <= this.#room(account);
  }

  /** Books bytes that are in memory already. */
  take(owner: Owner, bytes: number): void {
    const account = this.#account(owner);
    this.#check(bytes);
    account.used += bytes;
    this.#used += bytes;
    this.#report();
  }

  /** Books bytes out and wakes whoever has room now. Giving back more than was taken is a bug. */
  give(owner: Owner, bytes: number): void {
    const account = this.#account(owner);
    this.#check(bytes);
    if (bytes > account.used) {
      throw new Failure("internal.bug", `owner ${owner} gives back ${bytes} bytes but holds ${account.used}`);
    }
    account.used -= bytes;
    this.#used -= bytes;
    this.#report();
    this.#wake();
  }

  /** Everything that the owner held is gone (its lane died). Returns how much it was. */
  giveAll(owner: Owner): number {
    const held = this.#account(owner).used;
    if (held > 0) this.give(owner, held);
    return held;
  }

  /**
   * Calls `wake` once, as soon as the owner has room. If it has room already it is called in a microtask, never
   * from within this call, so a caller may register and then go on. A wake that registers again without taking
   * anything spins: look at `room` first.
   */
  whenRoom(owner: Owner, wake: () => void): void {
    const account = this.#account(owner);
    this.#waiting.push({ account, wake });
    if (this.#room(account) > 0) queueMicrotask(() => this.#wake());
  }

  #account(owner: Owner): Account {
    const account = this.#accounts.get(owner);
    if (account === undefined) throw new Failure("internal.bug", `the budget has no owner ${owner}`);
    return account;
  }

  #check(bytes: number): void {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new Failure("internal.bug", `${bytes} is not a number of bytes`);
    }
  }

  #room(account: Account): number {
    let free = this.maxBytes - this.#used;
    for (const other of this.#accounts.values()) {
      if (other !== account) free -= Math.max(0, this.#reserve - other.used);
    }
    if (free >= this.#grain) return free;
    return account.used === 0 ? Math.max(1, free) : 0;
  }

  /** Taking or giving changes the room of every owner, not only of the one that did it. */
  #report(): void {
    for (const account of this.#accounts.values()) {
      const full = this.#room(account) === 0;
      if (full === account.full) continue;
      account.full = full;
      this.#onChange(account.owner, full);
    }
  }

  /**
   * First come, first served. Room is looked at again before every call, because the wake before may have taken it.
   * A wake that throws does not cost the others theirs.
   */
  #wake(): void {
    const round = this.#waiting;
    this.#waiting = [];
    const errors: unknown[] = [];
    for (const waiter of round) {
      if (this.#room(waiter.account) === 0) {
        this.#waiting.push(waiter);
        continue;
      }
      try {
        waiter.wake();
      } catch (e) {
        errors.push(e);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
