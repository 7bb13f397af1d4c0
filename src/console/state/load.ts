// Data that a screen shows: read again when what is asked for changes, the old one staying until the new one is there.

import { useEffect, useRef, useState } from 'preact/hooks';
import { type Answer, type AnswerOf, addressOf, call, type Details, type Refusal } from '../api.ts';
import type { paths } from '../api-types';
import { entries } from './session.ts';

export interface Load<T> {
  /** The last that came; it is shown dimmed while the next one is read. */
  readonly data: T | null;
  readonly refusal: Refusal | null;
  readonly isLoading: boolean;
  readonly again: () => void;
}

/** `key` null: there is nothing to ask yet. */
export function useLoad<T>(key: string | null, read: (signal: AbortSignal) => Promise<Answer<T>>): Load<T> {
  const [state, setState] = useState<Omit<Load<T>, 'again'>>({ data: null, refusal: null, isLoading: key !== null });
  const [round, setRound] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void reader.current(controller.signal).then((answer) => {
      if (controller.signal.aborted) return;
      if (answer.ok) setState({ data: answer.data, refusal: null, isLoading: false });
      else setState((before) => refusedLoad(before.data, answer.refusal));
    });
    return () => controller.abort();
  }, [key, round, entries.value]);
  return { ...state, again: () => setRound((value) => value + 1) };
}

const SIGNED_OUT = 401;

/** Who has to sign in again keeps what is shown, and what was typed into it. */
function refusedLoad<T>(before: T | null, refusal: Refusal): Omit<Load<T>, 'again'> {
  const isKept = refusal.status === SIGNED_OUT && before !== null;
  return { data: isKept ? before : null, refusal: isKept ? null : refusal, isLoading: false };
}

/** One GET of the API. */
export function useRead<P extends keyof paths>(path: P | null, details: Details = {}): Load<AnswerOf<P>> {
  const key = path === null ? null : addressOf(path, details);
  return useLoad(
    key,
    (signal) =>
      call('get', path as P, { ...details, body: undefined, signal } as never) as Promise<Answer<AnswerOf<P>>>,
  );
}
