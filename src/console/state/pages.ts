// Listings that come in pages: the first page is loaded at once, later pages when the person asks for more.

import { useRef, useState } from 'preact/hooks';
import { addressOf, joinPages, type Page, type Query, type Refusal, readPages } from '../api.ts';
import { type Load, useLoad } from './load.ts';

export interface Pages<Row> extends Load<Page<Row>> {
  readonly more: {
    readonly isBusy: boolean;
    readonly refusal: Refusal | null;
    /** Loads the next pages; null when the listing is complete. */
    readonly read: (() => void) | null;
  };
}

/** Pages that one click on "More" reads: ten thousand rows take ten clicks, not a hundred. */
const AT_ONCE = 10;

/** `reload` reloads all pages that are shown, because a change may concern a row on the last of them. */
export function usePages<Row>(path: string, query: Query, { atOnce = AT_ONCE } = {}): Pages<Row> {
  const key = addressOf(path, { query });
  const count = useRef({ key, pages: 1 });
  if (count.current.key !== key) count.current = { key, pages: 1 };
  const load = useLoad<Page<Row>>(key, (signal) => readPages(path, query, null, count.current.pages, signal));
  const [later, setLater] = useState<{ readonly of: Page<Row> | null; readonly page: Page<Row> } | null>(null);
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly refusal: Refusal | null }>(IDLE);
  const shown = later !== null && later.of === load.data ? joinPages(load.data, later.page) : load.data;
  const cursor = shown?.next_cursor ?? null;
  const read = async () => {
    if (state.isBusy) return;
    const { data: of } = load;
    setState({ isBusy: true, refusal: null });
    const answer = await readPages<Row>(path, query, cursor, atOnce);
    setState({ isBusy: false, refusal: answer.ok ? null : answer.refusal });
    if (!answer.ok || count.current.key !== key) return;
    count.current = { key, pages: count.current.pages + atOnce };
    setLater({
      of,
      page: later !== null && later.of === of ? (joinPages(later.page, answer.data) ?? answer.data) : answer.data,
    });
  };
  return { ...load, data: shown, more: { ...state, read: cursor === null ? null : () => void read() } };
}

/** A choice offers at most 5,000 rows. Nobody looks through more. */
const OFFERED_PAGES_MAX = 50;
const OFFERED_AT_ONCE = 100;

/** Loads a whole listing, up to 5,000 rows, to choose from. With the path null nothing is loaded. */
export function useAll<Row>(path: string | null): Load<Page<Row>> {
  const query = { limit: OFFERED_AT_ONCE };
  return useLoad<Page<Row>>(path, (signal) => readPages(path ?? '', query, null, OFFERED_PAGES_MAX, signal));
}

const IDLE = { isBusy: false, refusal: null };
