// When a key was last used, as the report of days tells it.

export interface KeyDay {
  /** `2026-11-26`, in the zone that was asked for. */
  readonly date: string;
  readonly api_key_id?: string | null | undefined;
}

/** The last day of each key that has one, by its id. */
export function lastDaysOf(days: readonly KeyDay[]): ReadonlyMap<string, string> {
  const last = new Map<string, string>();
  for (const { date, api_key_id: id } of days) if (id != null && date > (last.get(id) ?? '')) last.set(id, date);
  return last;
}
