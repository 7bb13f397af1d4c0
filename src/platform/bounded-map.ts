// A map with a limited number of entries: a new entry evicts the one that was set longest ago.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  private readonly sizeMax: number;

  constructor(sizeMax: number) {
    super();
    this.sizeMax = sizeMax;
  }

  /** Setting a key again makes it the newest. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    if (this.size >= this.sizeMax) this.delete(this.keys().next().value as Key);
    return super.set(key, value);
  }
}
