// Lists the relays that have not ended, for the coarse clock to check. They lie in an array, and a relay that leaves is
// replaced by the last one, which allocates nothing. A Set that every request enters and leaves rebuilds its table all
// the time, and the discarded tables keep dead relays alive through collections: in a benchmark of the Set alone, that
// was a quarter of a request's CPU.

/** An entry of the list, which keeps `openIndex` up to date. */
export interface OpenRelay {
  openIndex: number;
  checkTime(nowMs: number): void;
  onOwnFault(fault: unknown): void;
}

export class OpenRelays {
  private readonly relays: OpenRelay[] = [];

  add(relay: OpenRelay): void {
    relay.openIndex = this.relays.length;
    this.relays.push(relay);
  }

  /** Once for each `add`. */
  remove(relay: OpenRelay): void {
    const last = this.relays.pop() as OpenRelay;
    if (last === relay) return;
    this.relays[relay.openIndex] = last;
    last.openIndex = relay.openIndex;
  }

  get size(): number {
    return this.relays.length;
  }

  /**
   * Checks the time of every relay. A relay may end and leave the list during its check. One that throws is ended and
   * does not keep the others from being checked.
   */
  checkTime(nowMs: number): void {
    for (let index = this.relays.length - 1; index >= 0; index -= 1) {
      const relay = this.relays[index];
      try {
        relay?.checkTime(nowMs);
      } catch (fault) {
        relay?.onOwnFault(fault);
      }
    }
  }
}
