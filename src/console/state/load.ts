// Loads data for a screen, and loads it again when the request changes. The previous data stays until the new is here.

import { useEffect, useRef, useState } from 'preact/hooks';
import { type Answer, type AnswerOf, addressOf, call, type Refusal, type RequestOptions } from '../api.ts';
import type { paths } from '../api-types';
import { signInCount } from './session.ts';

export interface Load<T> {
  /** The latest answer. It is shown dimmed while the next one is loading. */
  readonly data: T | null;
  /** As `data`, and it stays where a later load is refused, for what would take typed text with it. */
  readonly latest: T | null;
  readonly refusal: Refusal | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/**
 * Loads by `read`, again whenever `key` changes, somebody signs in anew, or `reload` is called. An earlier load that is
 * still under way is aborted. With the key null nothing is loaded.
 */
export function useLoad<T>(key: string | null, read: (signal: AbortSignal) => Promise<Answer<T>>): Load<T> {
  const [state, setState] = useState<Omit<Load<T>, 'reload'>>({
    data: null,
    latest: null,
    refusal: null,
    isLoading: key !== null,
  });
  const [round, setRound] = useState(0);
  const reader = useRef(read);
  reader.current = read;
  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void reader.current(controller.signal).then((answer) => {
      if (controller.signal.aborted) return;
      if (answer.ok) setState({ data: answer.data, latest: answer.data, refusal: null, isLoading: false });
      else setState((before) => refusedLoad(before, answer.refusal));
    });
    return () => controller.abort();
  }, [key, round, signInCount.value]);
  return { ...state, reload: () => setRound((value) => value + 1) };
}

const SIGNED_OUT = 401;

/** After a 401 the data stays, and with it what was typed, so that the person can sign in again and go on. */
function refusedLoad<T>({ data, latest }: Pick<Load<T>, 'data' | 'latest'>, refusal: Refusal): Omit<Load<T>, 'reload'> {
  const isKept = refusal.status === SIGNED_OUT && data !== null;
  return { data: isKept ? data : null, latest, refusal: isKept ? null : refusal, isLoading: false };
}

/** For data that is loaded every few seconds: it is not dimmed during each load. */
export function undimmed<L extends Load<unknown>>(load: L): L {
  return { ...load, isLoading: load.data === null && load.isLoading };
}

/** Loads by one GET of the API. With the path null nothing is loaded. */
export function useRead<P extends keyof paths>(path: P | null, options: RequestOptions = {}): Load<AnswerOf<P>> {
  const key = path === null ? null : addressOf(path, options);
  return useLoad(
    key,
    (signal) =>
      call('get', path as P, { ...options, body: undefined, signal } as never) as Promise<Answer<AnswerOf<P>>>,
  );
}
