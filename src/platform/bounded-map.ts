// A map with a limited number of entries: the entry that was set longest ago gives way to a new one.

export class BoundedMap<Key, Value> extends Map<Key, Value> {
  private readonly sizeMax: number;

  constructor(sizeMax: number) {
    super();
    this.sizeMax = sizeMax;
  }

  /** A key that is set again becomes the newest. */
  override set(key: Key, value: Value): this {
    this.delete(key);
    if (this.size >= this.sizeMax) this.delete(this.keys().next().value as Key);
    return super.set(key, value);
  }
}
