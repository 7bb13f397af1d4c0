// Looks up the host names of providers. The system's resolver (getaddrinfo, with /etc/hosts) runs in libuv's few
// threads, which also sync the spool. So answers are cached for a few seconds, each name is looked up once at a time,
// and at most two names at once (more with a resolver that needs no thread). If the resolver fails or hangs, the last
// answer is used for a while.

import { type LookupAddress, type LookupAllOptions, lookup as lookupBySystem } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { BoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';

const FRESH_MS = 5_000;
const STALE_MS_MAX = 600_000;
const SYSTEM_LOOKUPS_MAX = 2;
/** How long a connection waits for a new answer when there is an old one; then it gets the old one. */
const STALE_AFTER_WAIT_MS = 1_000;
/**
 * A limit for safety; beyond it, the least recently used name is forgotten. It is higher than the number of concurrent
 * look-ups, so that names whose look-ups hang cannot push out the last answers of other names.
 */
const NAMES_MAX = 10_000;

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;
export type Resolve = (host: string, options: LookupAllOptions, callback: Answer) => void;

interface Name {
  readonly host: string;
  addresses: LookupAddress[];
  answeredAtMs: number;
  /** Whether its look-up is queued or running. */
  isAskedFor: boolean;
  /** Whether that look-up has lasted longer than `STALE_AFTER_WAIT_MS`. */
  isLate: boolean;
  waiting: Answer[];
}

export class NameLookups {
  private readonly clock: Clock;
  private readonly resolve: Resolve;
  private readonly lookupsMax: number;
  private readonly names = new BoundedMap<string, Name>(NAMES_MAX);
  /** Names that wait until one of the running look-ups ends. */
  private readonly queue: { readonly name: Name; readonly timer: NodeJS.Timeout }[] = [];
  private underWay = 0;

  /** `lookupsMax`: how many names may be looked up at once. */
  constructor(clock: Clock, resolve: Resolve = lookupBySystem, lookupsMax = SYSTEM_LOOKUPS_MAX) {
    this.clock = clock;
    this.resolve = resolve;
    this.lookupsMax = lookupsMax;
  }

  /** The `lookup` option of a socket. Never calls back before it returns. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    const tell: Answer = (error, addresses) => {
      const [first] = addresses;
      // With happy eyeballs (`autoSelectFamily`) all addresses are requested.
      if (options.all === true) callback(error, addresses);
      else callback(error, first?.address ?? '', first?.family ?? 0);
    };
    const name = this.nameOf(host);
    if (this.isYoungerThan(name, name.isLate ? STALE_MS_MAX : FRESH_MS)) {
      queueMicrotask(() => tell(null, name.addresses));
      return;
    }
    this.wait(name, tell);
  };

  private nameOf(host: string): Name {
    let name = this.names.get(host);
    if (name === undefined) {
      name = {
        host,
        addresses: [],
        answeredAtMs: Number.NEGATIVE_INFINITY,
        isAskedFor: false,
        isLate: false,
        waiting: [],
      };
    }
    this.names.set(host, name);
    return name;
  }

  private isYoungerThan(name: Name, ageMs: number): boolean {
    return this.clock.monotonicMs() - name.answeredAtMs < ageMs;
  }

  private wait(name: Name, tell: Answer): void {
    name.waiting.push(tell);
    if (name.isAskedFor) return;
    name.isAskedFor = true;
    const timer = setTimeout(() => this.onLate(name), STALE_AFTER_WAIT_MS);
    this.queue.push({ name, timer });
    this.askNext();
  }

  private askNext(): void {
    while (this.underWay < this.lookupsMax) {
      const next = this.queue.shift();
      if (next === undefined) return;
      const { name, timer } = next;
      this.underWay += 1;
      this.resolve(name.host, { all: true }, (error, addresses) => {
        clearTimeout(timer);
        this.underWay -= 1;
        name.isAskedFor = false;
        name.isLate = false;
        this.take(name, error, addresses);
        this.askNext();
      });
    }
  }

  private take(name: Name, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    if (error === null) {
      name.addresses = addresses;
      name.answeredAtMs = this.clock.monotonicMs();
    }
    if (error === null || this.isYoungerThan(name, STALE_MS_MAX)) this.tellAll(name, null, name.addresses);
    else this.tellAll(name, error, []);
  }

  private onLate(name: Name): void {
    name.isLate = true;
    if (this.isYoungerThan(name, STALE_MS_MAX)) this.tellAll(name, null, name.addresses);
  }

  private tellAll(name: Name, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    const { waiting } = name;
    name.waiting = [];
    for (const tell of waiting) tell(error, addresses);
  }
}
