// A listing that comes in pages: the first when it is shown, later ones below it when somebody asks for more.

import { useRef, useState } from 'preact/hooks';
import { addressOf, joined, type Page, type Query, type Refusal, readPages } from '../api.ts';
import { type Load, useLoad } from './load.ts';

export interface Pages<Row> extends Load<Page<Row>> {
  readonly more: {
    readonly isBusy: boolean;
    readonly refusal: Refusal | null;
    /** null: there are no more. */
    readonly read: (() => void) | null;
  };
}

/** Pages that `more` reads at once, so that ten thousand rows are ten clicks and not a hundred. */
const AT_ONCE = 10;

/** `again` reads as many pages as are shown: a row of the tenth may have been changed. */
export function usePages<Row>(path: string, query: Query, { atOnce = AT_ONCE } = {}): Pages<Row> {
  const key = addressOf(path, { query });
  const count = useRef({ key, pages: 1 });
  if (count.current.key !== key) count.current = { key, pages: 1 };
  const load = useLoad<Page<Row>>(key, (signal) => readPages(path, query, null, count.current.pages, signal));
  const [later, setLater] = useState<{ readonly of: Page<Row> | null; readonly page: Page<Row> } | null>(null);
  const [state, setState] = useState<{ readonly isBusy: boolean; readonly refusal: Refusal | null }>(IDLE);
  const shown = later !== null && later.of === load.data ? joined(load.data, later.page) : load.data;
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
      page: later !== null && later.of === of ? (joined(later.page, answer.data) ?? answer.data) : answer.data,
    });
  };
  return { ...load, data: shown, more: { ...state, read: cursor === null ? null : () => void read() } };
}

/** Pages that are read for a choice of one of them: nobody looks through more than five thousand. */
const OFFERED_PAGES_MAX = 50;
const OFFERED_AT_ONCE = 100;

/** All of a listing, to choose one from. `path` null: there is nothing to ask yet. */
export function useAll<Row>(path: string | null): Load<Page<Row>> {
  const query = { limit: OFFERED_AT_ONCE };
  return useLoad<Page<Row>>(path, (signal) => readPages(path ?? '', query, null, OFFERED_PAGES_MAX, signal));
}

const IDLE = { isBusy: false, refusal: null };
