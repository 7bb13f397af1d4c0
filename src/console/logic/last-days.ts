// Finds the last day on which each key was used in a report by day.

export interface KeyDay {
  /** `2026-11-26`, a day in the time zone of the report. */
  readonly date: string;
  readonly api_key_id?: string | null | undefined;
}

/** The last day of use by the id of the key. Keys that were not used are missing. */
export function lastDaysOf(days: readonly KeyDay[]): ReadonlyMap<string, string> {
  const last = new Map<string, string>();
  for (const { date, api_key_id: id } of days) if (id != null && date > (last.get(id) ?? '')) last.set(id, date);
  return last;
}
